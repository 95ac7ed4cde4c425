"""Capture: a user's model becomes a case whose module computes the same, whatever it takes and returns."""

import numpy as np
import pytest
import torch

from harness.case.building import load_tensors, module_of
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.sampling import calibration_samples
from harness.evidence.rounding.walk import envelopes
from harness.workers.capture import capture_model, on_tensors, tensors_in


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def captured(tmp_path, model, calibration, **names):
    """The case of a model, and its tensors."""
    names = {"model": model, "calibration": calibration, **names}
    target, recipe = names.pop("target", "TOSA-1.0+INT"), names.pop("recipe", "a8w8")
    result = capture_model(names, "model.py", tmp_path, target, recipe)
    case = read_case(tmp_path)
    assert result.case == str(tmp_path / "case.json")
    return case, load_tensors(case, tmp_path)


def assert_same(case, tensors, model, calibration):
    """The case's module returns what the model returns, tensor by tensor."""
    for sample, arrays in zip(calibration, calibration_samples(case, tensors), strict=True):
        wanted = tensors_in(model(*sample))
        shown = tensors_in(module_of(case, tensors)(*(torch.from_numpy(array.copy()) for array in arrays)))
        assert [item.dtype for item in shown] == [item.dtype for item in wanted]
        for one, other in zip(shown, wanted, strict=True):
            np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


SEVERAL = {
    "split": lambda x: torch.split(x, 2, dim=1),
    "split in one": lambda x: torch.split(x, 8, dim=1)[0] + 1,
    "chunk": lambda x: torch.chunk(x, 2, dim=1)[1] + 1,
    "unbind": lambda x: [part + 1 for part in x.unbind(0)],
    "max": lambda x: torch.max(x, dim=1),
    "topk": lambda x: torch.topk(x, 2, dim=1)[0],
    "sort": lambda x: torch.sort(x, dim=1)[1],
    "the last": lambda x: torch.split(x, 2, dim=1)[-1],
}


@pytest.mark.parametrize("function", SEVERAL.values(), ids=SEVERAL)
def test_results_of_an_operator_with_several_are_values_of_their_own(tmp_path, function):
    calibration = [(torch.rand(2, 4),), (torch.rand(2, 4),)]
    case, tensors = captured(tmp_path, Module(function), calibration)
    assert_same(case, tensors, Module(function), calibration)


def nested(values, nothing, factor, flag, pair):
    first = values["x"] * factor if flag else values["x"]
    return {"a": first, "b": None, "c": 3, "d": (pair[0] + pair[1], [values["x"].to(torch.float32) + 1])}


def test_inputs_and_outputs_may_be_nested_and_hold_what_is_no_tensor(tmp_path):
    calibration = [({"x": torch.rand(2, 3)}, None, 2, True, [torch.rand(2, 3), 1.5]) for _ in range(2)]
    case, tensors = captured(tmp_path, Module(nested), calibration)
    assert [item.name for item in case.graph.inputs] == ["inputs_0_x", "inputs_4_0"]
    assert len(case.graph.outputs) == 3
    assert not any("assert" in node.operator for node in case.graph.nodes)
    assert_same(case, tensors, Module(nested), calibration)


def test_the_original_can_be_called_as_its_case_is():
    sample = ({"x": torch.rand(2, 3)}, None, 2, True, [torch.rand(2, 3), 1.5])
    model = Module(nested)
    flat = on_tensors(Module(nested), sample)
    assert type(flat).__qualname__ == "Module"
    for one, other in zip(flat(*tensors_in(sample)), tensors_in(model(*sample)), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (({"x": torch.rand(2, 3)}, 3), "calibration[1][1] is 3, calibration[0][1] is 2; give what is no tensor"),
        (({"y": torch.rand(2, 3)}, 2), "calibration[1] is not nested as calibration[0] is; give every sample"),
        (({"x": torch.rand(1, 3)}, 2), "calibration[1][0]['x'] is torch.float32 [1, 3]"),
        ((torch.rand(2, 3), 2), "calibration[1] is not nested"),
    ],
)
def test_samples_of_another_form_are_refused_in_one_line(tmp_path, second, said):
    model = Module(lambda values, factor: values["x"] * factor)
    with pytest.raises(BadInput) as caught:
        captured(tmp_path, model, [({"x": torch.rand(2, 3)}, 2), second])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_that_returns_no_tensor_is_refused_in_one_line(tmp_path):
    with pytest.raises(BadInput, match="returns no tensor; return at least one"):
        captured(tmp_path, Module(lambda x: 3), [(torch.rand(2),)])


def test_float16_is_captured_and_its_arithmetic_unjudged(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).half()
    calibration = [(torch.rand(2, 4).half(),)]
    case, tensors = captured(tmp_path, model, calibration, target="TOSA-1.0+FP", recipe="float")
    assert {item.dtype for item in (*case.graph.inputs, *case.graph.constants)} == {"float16"}
    assert_same(case, tensors, model, calibration)
    graph = torch.export.export(model, calibration[0]).module(check_guards=False)
    [envelope] = envelopes(graph, tuple(calibration_samples(case, tensors)[0]), "rounding")
    assert envelope.unjudged == ("aten.linear in float16",)


def test_the_bytes_of_an_image_are_captured_and_judged(tmp_path):
    model = Module(lambda image: (image.permute(0, 3, 1, 2).float() / 255, image + 100, image.amax(1).to(torch.int64)))
    calibration = [(torch.randint(0, 256, (1, 4, 4, 3), dtype=torch.uint8),) for _ in range(2)]
    case, tensors = captured(tmp_path, model, calibration)
    assert [item.dtype for item in case.graph.inputs] == ["uint8"]
    assert_same(case, tensors, model, calibration)
    graph = torch.export.export(model, calibration[0]).module(check_guards=False)
    judged = envelopes(graph, tuple(calibration_samples(case, tensors)[0]), "rounding")
    assert [item.unjudged for item in judged] == [()] * 3
    wrapped = judged[1]
    np.testing.assert_array_equal(wrapped.low, (calibration[0][0] + 100).numpy())
    np.testing.assert_array_equal(wrapped.low, wrapped.high)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x.to(torch.bfloat16) + 1, "is bfloat16, which no case holds; check the model in one of float32"),
        (
            lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, [x]),
            "the model contains control flow (true_graph_0)",
        ),
    ],
    ids=["bfloat16", "cond"],
)
def test_what_no_case_can_hold_is_refused_in_one_line(tmp_path, function, said):
    with pytest.raises(BadInput) as caught:
        captured(tmp_path, Module(function), [(torch.rand(2, 3),)])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
