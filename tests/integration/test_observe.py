"""Real lowerings of a handful of graphs: what a clean case looks like, and seed 001's on this release."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from harness.artifacts.tosa import decode_tosa
from harness.case.reading import read_case
from harness.case.target import DEFAULT_TARGETS
from harness.compat.releases import release_line
from harness.evidence.comparing import comparisons
from harness.evidence.references import FVP, MODEL, RUNTIME, TOSA, VGF
from harness.pipeline.lowering import StageClock
from harness.workers.observing import InvalidCase, Options, examine, judge, observe
from tests.integration.conftest import (
    constant_join_case,
    linear_case,
    relu_join_case,
    sigmoid_case,
    two_outputs_case,
)


@pytest.mark.parametrize("target", DEFAULT_TARGETS)
def test_a_clean_case_runs_every_leg_and_is_exact(observed, target):
    seen = observed(sigmoid_case(target))
    assert judge(seen) == []
    assert seen.failure is None
    engines = {MODEL} if target.startswith("ethos-u") else set()
    assert {name for name, leg in seen.legs.items() if leg.ran} == {"eager", "quantized-eager", TOSA, RUNTIME, *engines}
    assert {name for name, leg in seen.legs.items() if leg.skipped} == {MODEL, FVP, VGF} - engines
    for name in (TOSA, *engines):
        for wanted, got in zip(seen.legs["quantized-eager"].outputs, seen.legs[name].outputs, strict=True):
            assert np.array_equal(wanted[0], got[0])
        assert len(seen.legs[name].outputs) == len(seen.inputs) >= 4
    compared = list(seen.probes.get("streams", {}).values())
    assert [item.compared for item in compared] == [4] * len(engines)
    assert all(item.difference is None and item.issues == () for item in compared)


@pytest.mark.parametrize("target", DEFAULT_TARGETS)
def test_the_lowering_leaves_a_record(observed, target):
    record = observed(sigmoid_case(target)).lowering
    [delegate] = record.delegates
    assert delegate.tosa is not None
    assert b"TOSA" in delegate.tosa[:16]
    assert (delegate.payload == delegate.tosa) == target.startswith("TOSA")
    assert {"aten.relu.default", "aten.sigmoid.default"} <= set(delegate.operators)
    assert record.fallback == ()
    assert record.program[4:6] == b"ET"
    assert {"export", "prepare", "convert", "lower", "emit"} <= set(record.seconds)
    assert record.outputs[0].domain is not None
    assert record.outputs[0].shape == (1, 4)


def test_a16w8_and_fp_profiles_are_clean(observed):
    assert judge(observed(sigmoid_case(recipe="a16w8"))) == []
    fp = observed(linear_case("TOSA-1.0+FP", "float"))
    assert judge(fp) == []
    assert fp.legs["quantized-eager"].skipped
    assert fp.lowering.delegates


def test_several_outputs_keep_their_order(observed):
    seen = observed(two_outputs_case())
    assert judge(seen) == []
    assert len(seen.legs[TOSA].outputs[0]) == 2


def test_a_factory_constant_joined_with_an_activation_is_exact(observed):
    assert judge(observed(constant_join_case())) == []


def test_parts_left_float_fall_back_and_still_agree(observed):
    seen = observed(sigmoid_case(recipe="a8w8,float=n1"))
    assert judge(seen) == []
    assert "aten.sigmoid.default" in seen.lowering.fallback


def test_widths_of_single_nodes_and_four_bit_weights_are_lowered_and_judged(observed):
    mixed = observed(sigmoid_case(recipe="a8w8,a16w8=n1"))
    assert judge(mixed) == []
    assert {domain.qmax for domain in mixed.lowering.domains.values()} == {127, 32767}
    narrow = observed(linear_case(recipe="a8w4"))
    assert judge(narrow) == []
    (delegate,) = narrow.lowering.delegates
    assert "INT4" in {tensor.dtype for tensor in decode_tosa(delegate.tosa).main.tensors.values()}


def test_the_envelope_is_sharp(observed):
    for case in (sigmoid_case(), linear_case(), two_outputs_case()):
        for row in comparisons(observed(case), TOSA):
            assert row.unsound == 0
            assert row.unjudged == 0
            assert row.bound <= 1.01


@pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
@pytest.mark.parametrize("target", DEFAULT_TARGETS)
def test_a_lost_clamp_is_found_on_every_default_target(target):
    """conv -> relu in a shared domain with zp != qmin: the fusion moves the clamp into qmin and loses it."""
    _, found = examine(relu_join_case(target), StageClock())
    numeric, qparams = found
    assert (numeric.oracle, numeric.kind, numeric.pass_name) == ("numeric", "outside rounding", "RewriteConvPass")
    assert (qparams.oracle, qparams.kind, qparams.pass_name) == ("qparams", "clamp lost", "RewriteConvPass")
    assert numeric.measured["in_range"] is True
    assert numeric.measured["distance"] > 2


def test_a_module_that_fails_in_eager_is_no_case():
    import torch

    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    with pytest.raises(InvalidCase, match="fails in float eager: ValueError: no"):
        observe(sigmoid_case(), StageClock(), Options(model=Broken()))


@pytest.mark.skipif(release_line() != "default", reason="what executorch 1.5.1 does with this pattern")
def test_a_delegate_that_does_not_fit_its_program_fails_one_leg_only():
    entry = Path(__file__).parents[2] / "corpus/found/split-fallback-output-dtype"
    case = msgspec.structs.replace(read_case(entry), target="ethos-u55-128")
    seen, found = examine(case, StageClock(), Options(blame=False))
    assert "delegate output 0 is torch.int8" in str(seen.legs[MODEL].skipped)
    [crash] = [item for item in found if item.oracle == "crash"]
    assert crash.stage == "leg:tosa-reference"
    assert [item.kind for item in found if item.oracle == "buffers"] == ["output dtype widened"]
