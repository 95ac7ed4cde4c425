"""Mutants of a small flatbuffer made by hand: one thing differs, it is the one named, and the file stays readable."""

import functools

import numpy as np
import pytest

from harness.artifacts.tosa import decode_tosa
from tests.mutation.mutate import mutate, sites

KINDS = {
    "RESCALE multiplier",
    "RESCALE shift",
    "RESCALE input zero point",
    "RESCALE output zero point",
    "RESCALE rounding mode",
    "CLAMP bound",
    "TABLE entry",
    "TRANSPOSE perms",
    "axis",
    "bias",
    "constant",
    "operands swapped",
    "operator zero point",
    "weight",
    "window dilation",
    "window padding",
    "window stride",
}


@functools.cache
def graph():
    """conv 3x3 -> transpose -> rescale -> subtract a constant -> rescale -> clamp -> table -> concat."""
    import tosa_serializer as ts

    out = ts.TosaSerializer("", targetMajor=1, targetMinor=0, targetPatch=0, targetDraft=False)
    int8, int32 = ts.DType.INT8, ts.DType.INT32

    def constant(name, shape, dtype, values):
        return out.addConst(list(shape), dtype, values, name=name).name

    def add(op, inputs, shape, dtype, name, attribute, *arguments, **options):
        made = ts.TosaSerializerAttribute()
        getattr(made, f"{attribute}Attribute")(*arguments, **options)
        out.currRegion.currBasicBlock.addTensor(name, list(shape), dtype)
        out.addOperator(op, inputs, [name], made)
        return name

    def rescale(source, name, shape, input_type, output_type):
        operands = [
            constant(f"{name}_multiplier", [1], int32, [1 << 30]),
            constant(f"{name}_shift", [1], int8, [30]),
            constant(f"{name}_input_zp", [1], input_type, [3 if input_type == int8 else 0]),
            constant(f"{name}_output_zp", [1], output_type, [5 if output_type == int8 else 0]),
        ]
        rounding = ts.RoundingMode.SINGLE_ROUND
        options = {"scale32": True, "rounding_mode": rounding, "per_channel": False}
        options |= {"input_unsigned": False, "output_unsigned": False}
        return add(ts.Op.RESCALE, [source, *operands], shape, output_type, name, "Rescale", **options)

    block = out.currRegion.currBasicBlock
    block.addTensor("x", [1, 5, 5, 1], int8)
    block.addInput("x")
    weights = constant("weights", [2, 3, 3, 1], int8, np.arange(-9, 9, dtype=np.int8).reshape(2, 3, 3, 1))
    bias = constant("bias", [2], int32, [1000, -1000])
    zero_points = [constant(name, [1], int8, [0]) for name in ("x_zp", "w_zp")]
    operands = ["x", weights, bias, *zero_points]
    add(ts.Op.CONV2D, operands, [1, 5, 5, 2], int32, "conv", "Conv2d", [1, 1, 1, 1], [1, 1], [1, 1], False, int32)
    add(ts.Op.TRANSPOSE, ["conv"], [1, 5, 5, 2], int32, "turned", "Transpose", [0, 2, 1, 3])
    rescale("turned", "small", (1, 5, 5, 2), int32, int8)
    rescale("small", "wide", (1, 5, 5, 2), int8, int32)
    other = constant("other", [1, 5, 5, 2], int32, np.arange(50, dtype=np.int32).reshape(1, 5, 5, 2))
    add(ts.Op.SUB, ["wide", other], [1, 5, 5, 2], int32, "less", "Sub")
    rescale("less", "codes", (1, 5, 5, 2), int32, int8)
    bounds = [np.frombuffer(np.int8(value).tobytes(), np.uint8).tolist() for value in (-10, 100)]
    add(ts.Op.CLAMP, ["codes"], [1, 5, 5, 2], int8, "held", "Clamp", *bounds, ts.NanPropagationMode.PROPAGATE)
    table = constant("entries", [256], int8, np.arange(-128, 128).astype(np.int8))
    add(ts.Op.TABLE, ["held", table], [1, 5, 5, 2], int8, "looked", "Table")
    add(ts.Op.CONCAT, ["looked", "held"], [1, 5, 5, 4], int8, "joined", "Concat", 3)
    block.addOutput("joined")
    return out.serialize()


def mutants(kind, count=24):
    rng = np.random.default_rng(0)
    return [mutate(graph(), rng, kind) for _ in range(count)]


@functools.cache
def decoded(data):
    return decode_tosa(data).main


def differences(mutant):
    """(tensors whose constant differs, operators that differ) of a mutant."""
    clean, altered = decoded(graph()), decoded(mutant)
    assert clean.tensors.keys() == altered.tensors.keys()
    tensors = {name for name, tensor in clean.tensors.items() if tensor != altered.tensors[name]}
    operators = {one.index for one, other in zip(clean.operators, altered.operators, strict=True) if one != other}
    return tensors, operators


def test_every_kind_that_the_graph_offers_is_found():
    assert {site.kind for site in sites(graph())} >= KINDS
    drawn = {mutation.kind for _, mutation in mutants(None, 300)}
    assert drawn == KINDS


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_mutant_differs_only_where_it_says(kind):
    for data, mutation in mutants(kind):
        assert len(data) == len(graph())
        assert mutation.kind == kind
        assert mutation.before != mutation.after
        tensors, operators = differences(data)
        if mutation.tensor:
            assert (tensors, operators) == ({mutation.tensor}, set())
            assert mutation.tensor in decoded(data).operators[mutation.operator].inputs
        else:
            assert (tensors, operators) == (set(), {mutation.operator})


def test_mutants_repeat_with_their_seed():
    assert mutants(None) == mutants(None)


def test_rescale_parameters_stay_what_tosa_allows():
    for data, mutation in mutants("RESCALE multiplier"):
        value = int(decoded(data).tensors[mutation.tensor].values()[0])
        assert 0 <= value < 1 << 31
        assert value == int(mutation.after)
    assert {int(mutation.after) for _, mutation in mutants("RESCALE shift")} == {29, 31}
    for kind in ("RESCALE input zero point", "RESCALE output zero point"):
        # int32 has no zero point: only int8 ones are changed
        assert {mutation.before for _, mutation in mutants(kind)} <= {"3", "5"}


def test_windows_keep_the_size_of_their_output():
    for kind in ("window padding", "window stride", "window dilation"):
        for data, mutation in mutants(kind):
            attributes = decoded(data).operators[mutation.operator].attributes
            for axis in range(2):
                before, behind = attributes["Pad"][2 * axis : 2 * axis + 2]
                reach = 5 + before + behind - 2 * attributes["Dilation"][axis] - 1
                assert reach == 4 * attributes["Stride"][axis]
                assert min(before, behind) >= 0


def test_operands_are_exchanged():
    for data, mutation in mutants("operands swapped"):
        clean, altered = (decoded(item).operators[mutation.operator] for item in (graph(), data))
        assert altered.op in ("SUB", "CONCAT")
        assert altered.inputs == clean.inputs[::-1]


def test_clamp_bounds_are_signed_and_in_order():
    for data, mutation in mutants("CLAMP bound"):
        attributes = decoded(data).operators[mutation.operator].attributes
        low, high = (int(np.uint8(attributes[name][0]).view(np.int8)) for name in ("MinVal", "MaxVal"))
        assert low <= high
        assert (low, high) != (-10, 100)
        assert int(mutation.before) in (-10, 100)
