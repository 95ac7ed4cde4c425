"""Mutable state: a model with a cache is captured as it is, and its calls in a row are judged on every leg."""

import numpy as np
import pytest
import torch

from harness.case.aten import changed_state
from harness.case.building import load_tensors
from harness.case.reading import read_case
from harness.evidence.references import EAGER, QUANTIZED, RUNTIME, TOSA
from harness.evidence.rounding.walk import envelopes
from harness.pipeline.lowering import StageClock
from harness.workers.capture import capture_model
from harness.workers.observing import Options, examine


class Cache(torch.nn.Module):
    """Attention over the last four keys."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 4, 8))
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        self.cache.copy_(torch.cat([self.cache[:, 1:], self.linear(x)], 1))
        return torch.bmm(torch.sigmoid(torch.bmm(x, self.cache.transpose(1, 2))), self.cache)


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    torch.manual_seed(0)
    model, folder = Cache(), tmp_path_factory.mktemp("cache")
    sample = torch.rand(1, 1, 8) - 0.5
    names = {"model": model, "calibration": [(sample,), (sample / 2,), (-sample,)]}
    capture_model(names, "cache.py", folder, "TOSA-1.0+INT", "a8w8")
    assert not model.cache.any()  # the user's own state is as it was
    case = read_case(folder)
    return case, *examine(case, StageClock(), Options(tensors=load_tensors(case, folder)))


def test_the_buffer_is_state_that_starts_as_the_user_gave_it(observed):
    case, _, _ = observed
    assert changed_state(case.graph) == {"b_cache"}


def test_every_leg_carries_state_from_call_to_call(observed):
    _, observation, mismatches = observed
    assert [mismatch.message for mismatch in mismatches] == []
    legs = [observation.legs[name] for name in (EAGER, QUANTIZED, TOSA, RUNTIME)]
    assert all(leg.ran for leg in legs)
    torch.manual_seed(0)
    model = Cache()
    for run, item in enumerate(observation.inputs):
        wanted = model(torch.from_numpy(item.arrays[0])).detach().numpy()
        for leg in legs if item.in_range else legs[:1]:
            assert np.abs(leg.outputs[run][0] - wanted).max() < 0.1
        [low, high] = (getattr(observation.rounding[run][0], end) for end in ("low", "high"))
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()


def written_through_views(module, x):
    module.state[:, 1:3] = x[:, :2]
    first, second = torch.split(module.state, 2, dim=1)
    second.add_(first)
    flat = module.state.view(-1)
    flat[0] = 7.0
    module.count.add_(1)
    return module.state + 0.0, first * 1.0, second.t() + module.count


def test_envelopes_follow_what_is_written_through_views_and_from_call_to_call():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2, 4))
            self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

        def forward(self, x):
            return written_through_views(self, x)

    graph = torch.export.export(Module(), (torch.rand(2, 4),)).module(check_guards=False)
    model, state = Module(), {}
    before = {name: buffer.clone() for name, buffer in graph.named_buffers()}
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(before[name])
    for _ in range(3):
        x = torch.rand(2, 4)
        for envelope, wanted in zip(envelopes(graph, (x.numpy(),), "rounding", state), model(x), strict=True):
            np.testing.assert_allclose(envelope.low, wanted.numpy(), atol=1e-5)
            np.testing.assert_allclose(envelope.high, wanted.numpy(), atol=1e-5)
            assert envelope.unjudged == ()
    assert all(torch.equal(buffer, before[name]) for name, buffer in graph.named_buffers())


def test_a_value_that_is_written_into_state_need_not_saturate_on_its_way_to_the_next_operator(tmp_path):
    """FuseConsecutiveRescalesPass passes the int32 sum on, here past the range that calibration saw."""

    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x):
            self.count.copy_(self.count + 1.0)
            return x + self.count

    names = {"model": Counter(), "calibration": [(torch.full((4,), 0.25),), (torch.full((4,), 0.9),)]}
    capture_model(names, "counter.py", tmp_path, "TOSA-1.0+INT", "a8w8")
    case = read_case(tmp_path)
    observation, mismatches = examine(case, StageClock(), Options(tensors=load_tensors(case, tmp_path)))
    assert [mismatch.message for mismatch in mismatches] == []
    quantized, lowered = (observation.legs[name].outputs for name in (QUANTIZED, TOSA))
    assert np.abs(lowered[2][0] - quantized[2][0]).max() > 0.5
