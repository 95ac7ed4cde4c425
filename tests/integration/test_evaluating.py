"""Passes share an interpreter and remember what they evaluated; what they make of a graph stays the same."""

import pytest
import torch
from executorch.exir import pass_base
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from harness.compat.warm.evaluating import _RUNS, evaluate_once, key_of, remembered, share_interpreter


@pytest.fixture
def fakes():
    """``fakes(shape, dtype)`` of one mode."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    return lambda *shape, dtype=torch.float32: FakeTensor(mode, torch.empty(shape, dtype=dtype, device="meta"), "cpu")


@pytest.fixture
def evaluating(monkeypatch):
    """Operators remember inside; ``evaluating(target, *args)`` is what a pass's interpreter does."""
    monkeypatch.setattr(torch.fx.Interpreter, "call_function", torch.fx.Interpreter.call_function)
    for owner, name in _RUNS:
        monkeypatch.setattr(owner, name, getattr(owner, name))
    evaluate_once()
    interpreter = torch.fx.Interpreter(torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()))
    return lambda target, *args, **kwargs: interpreter.call_function(target, args, kwargs)


def test_operands_of_one_kind_have_one_key(fakes):
    one = key_of(torch.add, (fakes(2, 3), [1, 2.0, None]), {"alpha": 1})
    assert one == key_of(torch.add, (fakes(2, 3), [1, 2.0, None]), {"alpha": 1})
    others = [
        key_of(torch.mul, (fakes(2, 3), [1, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(3, 2), [1, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(2, 3, dtype=torch.int8), [1, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(3, 2).t(), [1, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(2, 3), [1.0, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(2, 3), [True, 2.0, None]), {"alpha": 1}),
        key_of(torch.add, (fakes(2, 3), (1, 2.0, None)), {"alpha": 1}),
        key_of(torch.add, (fakes(2, 3), [1, 2.0, None]), {"alpha": 1.0}),
        key_of(torch.add, (fakes(2, 3), [1, 2.0, None]), {"beta": 1}),
        key_of(torch.add, (fakes(2, 3), [1, 2.0, None]), {}),
    ]
    assert len({one, *others}) == 1 + len(others)


def test_real_constant_and_symbolic_operands_have_none(fakes):
    size = ShapeEnv().create_unbacked_symint()
    held = fakes(2)
    held.constant = torch.ones(2)
    for operand in (torch.ones(2), held, size, [size], object()):
        assert key_of(torch.add, (operand,), {}) is None


def test_what_has_no_operand_is_made_anew_in_another_mode(evaluating):
    """As in passes over a graph without inputs, which take a mode each."""
    modes = [FakeTensorMode(), FakeTensorMode()]
    made = []
    with remembered({}):
        for mode in modes:
            with mode:
                made.append([evaluating(torch.ops.aten.full.default, [1], 1.0) for _ in range(2)])
    assert [first is again for first, again in made] == [True, True]
    assert [first.fake_mode for first, _ in made] == modes


def test_what_was_evaluated_is_remembered_inside_and_only_there(evaluating, fakes):
    calls = []

    def doubled(value, by=2):
        calls.append(by)
        return value * by

    inside = {}
    for _ in range(2):
        with remembered(inside):
            made = evaluating(doubled, fakes(2, 3))
            assert evaluating(doubled, fakes(2, 3)) is made
            assert evaluating(doubled, fakes(2, 3), by=3) is not made
    assert calls == [2, 3]
    with remembered({}):
        evaluating(doubled, fakes(2, 3))
    for _ in range(2):
        evaluating(doubled, fakes(2, 3))
    assert calls == [2, 3, 2, 2, 2]


def test_what_raises_raises_again(evaluating, fakes):
    def refused(value):
        raise ValueError(value.shape)

    with remembered({}):
        for _ in range(2):
            with pytest.raises(ValueError, match="2, 3"):
                evaluating(refused, fakes(2, 3))


def test_a_delegate_is_evaluated_once(evaluating, fakes):
    class Doubled(torch.nn.Module):
        def forward(self, x):
            return x * 2

    def called(lowered, value):
        calls.append(lowered)
        return lowered.original_module.module()(value)

    calls = []
    exported = torch.export.export(Doubled(), (torch.ones(2, 3),))
    one, other = (LoweredBackendModule(exported, "some", b"", []) for _ in range(2))
    with remembered({}):
        for lowered in (one, other, one):
            assert evaluating(called, lowered, fakes(2, 3)).shape == (2, 3)
    assert calls == [one, other]


@pytest.mark.parametrize(("owner", "name"), _RUNS)
def test_a_run_of_passes_begins_with_nothing(owner, name, evaluating, fakes, monkeypatch):
    calls = []

    def doubled(value):
        calls.append(1)
        return value * 2

    def transform(manager, times):
        for _ in range(times):
            evaluating(doubled, fakes(4))

    monkeypatch.setattr(owner, name, transform)
    evaluate_once()
    for _ in range(2):
        vars(owner)[name](None, 3)
    assert len(calls) == 2


def test_passes_have_one_interpreter_and_their_own_tracers(monkeypatch):
    monkeypatch.setattr(pass_base._ExportPassBase, "__init__", pass_base._ExportPassBase.__init__)
    before = (torch.fx.GraphModule, torch.fx.Interpreter)
    share_interpreter()
    one, other = pass_base.ExportPass(), pass_base.ExportPass()
    assert one.interpreter is other.interpreter
    assert one.tracer is not other.tracer
    assert (torch.fx.GraphModule, torch.fx.Interpreter) == before
    exported = torch.export.export(torch.nn.Hardtanh(), (torch.ones(2),))
    assert one.tracer._made is None
    assert one.tracer.graph.find_nodes(op="placeholder") == []  # somebody looks ahead of a run
    assert one.tracer.graph is one.tracer.graph
    assert not hasattr(one.tracer, "no_such_name")
    changed = one(exported.graph_module).graph_module
    assert [node.target for node in changed.graph.nodes] == [node.target for node in exported.graph.nodes]
