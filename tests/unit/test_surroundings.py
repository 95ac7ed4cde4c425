"""Places from graphs: the operators around a tensor, with their facts."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from harness.artifacts.tosa import SHAPE, TosaBlock, TosaOperator, TosaTensor
from harness.case.case import Constant, Graph, Input, Node, TensorType
from harness.case.place import INPUT
from harness.evidence.inspection.surroundings import case_place, tosa_place
from tests.unit.observations import CASE

SHAPES = {
    "x": (2, 4, 4, 3),
    "cut": (2, 4, 3, 3),
    "weight": (8, 3, 3, 3),
    "conv": (2, 2, 2, 8),
    "moved": (2, 8, 2, 2),
    "flat": (2, 32),
    "other": (2, 4, 4, 3),
    "far": (2, 8, 2, 2),
}


def graph() -> TosaBlock:
    """x -> SLICE -> CONV2D -> TRANSPOSE -> RESHAPE, and ABS of x beside it."""
    tensors = {name: TosaTensor(name, shape, "INT8") for name, shape in SHAPES.items()}
    tensors["weight"] = TosaTensor("weight", SHAPES["weight"], "INT8", bytes(np.prod(SHAPES["weight"])))
    made = [
        ("CONST", (), "weight", {}),
        ("SLICE", ("x",), "cut", {}),
        ("CONV2D", ("cut", "weight"), "conv", {"Pad": (1, 0, 1, 0), "Stride": (2, 2), "Dilation": (1, 1)}),
        ("TRANSPOSE", ("conv",), "moved", {"Perms": (0, 3, 1, 2)}),
        ("RESHAPE", ("moved",), "flat", {}),
        ("ABS", ("x",), "other", {}),
    ]
    operators = [TosaOperator(index, op, inputs, (out,), more) for index, (op, inputs, out, more) in enumerate(made)]
    return TosaBlock("main", ("x",), ("flat", "other"), tuple(operators), tensors)


def test_a_place_has_the_operators_around_a_tensor_and_the_inputs():
    place = tosa_place(graph(), ["conv"], {"share": 0.5})
    assert place is not None
    assert [item.op for item in place.operators] == [INPUT, "SLICE", "CONV2D", "TRANSPOSE", "RESHAPE", "ABS"]
    assert [place.operators[index].op for index in place.here] == ["CONV2D"]
    assert place.facts == {"share": 0.5}
    assert [item.reads for item in place.operators] == [(), (0,), (1,), (2,), (3,), (0,)]


def test_the_facts_of_windows_and_movement():
    place = tosa_place(graph(), ["conv"], {})
    assert place is not None
    facts = {item.op: item.facts for item in place.operators}
    conv = {
        "batch": 2,
        "kernel": 3,
        "stride": 2,
        "pad": 2,
        "pad_before": 1,
        "channels": 3,
        "out_channels": 8,
        "narrow": 2,
        "narrow_stride": 0,
    }
    assert conv.items() <= facts["CONV2D"].items()
    assert {"cut": 1, "outer": -2, "input": 1, "kept": 0}.items() <= facts["SLICE"].items()
    assert {"moved": 1, "moves_first": 0, "last_kept": 0, "narrower": 1, "rank": 4}.items() <= facts[
        "TRANSPOSE"
    ].items()
    assert {"last_kept": 0, "ones_only": 0, "output": 1, "kept": 1}.items() <= facts["RESHAPE"].items()


@pytest.mark.parametrize(
    ("size", "attributes", "skips"),
    [
        (4, {"Kernel": (1, 1), "Stride": (2, 1)}, 1),
        (4, {"Kernel": (2, 2), "Stride": (2, 2)}, 0),
        (4, {"Kernel": (2, 2), "Stride": (3, 3)}, 1),
        (1, {"Kernel": (1, 1), "Stride": (2, 2)}, 0),
    ],
)
def test_a_window_skips_what_lies_between_kernels_that_its_stride_puts_apart(size, attributes, skips):
    shapes = {"x": (1, 2 * size, 2 * size, 3), "y": (1, size, size, 3)}
    tensors = {name: TosaTensor(name, shape, "INT8") for name, shape in shapes.items()}
    pool = TosaOperator(0, "MAX_POOL2D", ("x",), ("y",), {"Pad": (0, 0, 0, 0), **attributes})
    place = tosa_place(TosaBlock("main", ("x",), ("y",), (pool,), tensors), ["y"], {})
    assert place is not None
    assert place.operators[1].facts["skips"] == skips


@pytest.mark.parametrize(("back", "undoes"), [((0, 2, 3, 1), 1), ((0, 3, 1, 2), 0)])
def test_a_transpose_may_undo_those_in_front_of_it(back, undoes):
    block = graph()
    shape = tuple(SHAPES["moved"][axis] for axis in back)
    again = TosaOperator(len(block.operators), "TRANSPOSE", ("moved",), ("back",), {"Perms": back})
    tensors = block.tensors | {"back": TosaTensor("back", shape, "INT8")}
    beside = dataclasses.replace(block, operators=(*block.operators, again), tensors=tensors)
    alone = dataclasses.replace(beside, operators=tuple(item for item in beside.operators if item.op != "RESHAPE"))
    for made, wanted in ((alone, undoes), (beside, 0)):
        place = tosa_place(made, ["back"], {})
        assert place is not None
        assert [item.facts["undoes"] for item in place.operators if item.op == "TRANSPOSE"] == [0, wanted]


@pytest.mark.parametrize(
    ("depth", "stride", "pad", "planewise"),
    [(1, 1, (0, 0, 1, 1, 0, 0), 1), (2, 1, (0,) * 6, 0), (1, 2, (0,) * 6, 0), (1, 1, (0, 1, 0, 0, 0, 0), 0)],
)
def test_a_convolution_of_planes_alone_says_so(depth, stride, pad, planewise):
    tensors = {
        "x": TosaTensor("x", (1, 3, 2, 2, 1), "INT8"),
        "weight": TosaTensor("weight", (1, depth, 2, 2, 1), "INT8", bytes(4 * depth)),
        "y": TosaTensor("y", (1, 3, 1, 1, 1), "INT32"),
    }
    made = [
        TosaOperator(0, "CONST", (), ("weight",), {}),
        TosaOperator(1, "CONV3D", ("x", "weight"), ("y",), {"Stride": (stride, 1, 1), "Pad": pad}),
    ]
    place = tosa_place(TosaBlock("main", ("x",), ("y",), tuple(made), tensors), ["y"], {})
    assert place is not None
    assert [item.facts["planewise"] for item in place.operators if item.op == "CONV3D"] == [planewise]


def test_the_readers_of_an_input_or_a_constant_are_its_place():
    found = [tosa_place(graph(), [name], {}) for name in ("x", "weight")]
    assert [[place.operators[index].op for index in place.here] for place in found if place] == [
        ["SLICE", "ABS"],
        ["CONV2D"],
    ]
    assert tosa_place(graph(), ["far"], {}) is None


def test_a_case_s_whole_graph_is_a_place_in_which_every_operator_may_be_wrong():
    place = case_place(CASE.graph)
    assert place is not None
    assert (place.graph, [item.op for item in place.operators], place.here) == ("aten", ["relu"], (0,))
    assert {"rank": 2, "elements": 4, "input": 1, "output": 1}.items() <= place.operators[0].facts.items()


@pytest.mark.parametrize(
    ("shape", "facts"),
    [
        ((4,), {"ranks_differ": 1, "broadcast": 0, "lone": 0, "constants": 1}),
        ((1, 4), {"ranks_differ": 0, "broadcast": 0, "constants": 1}),
    ],
)
def test_a_constant_of_another_rank_counts(shape: tuple[int, ...], facts: dict[str, int]):
    constant = Constant(name="c0", shape=shape, dtype="float32", kind="ones")
    node = Node(name="n0", operator="maximum", inputs=(CASE.graph.inputs[0].name, "c0"))
    place = case_place(replace(CASE.graph, constants=(constant,), nodes=(node,)))
    assert place is not None
    assert facts.items() <= place.operators[0].facts.items()


@pytest.mark.parametrize(
    ("shape", "lone"),
    [((1, 1), {"lone": 1, "broadcast": 1}), ((1, 4), {"lone": 0, "broadcast": 1}), ((4, 4), {"lone": 0})],
)
def test_an_operand_of_one_element_beside_a_larger_one_is_told(shape: tuple[int, ...], lone: dict[str, int]):
    inputs = (Input(name="x", shape=(4, 4)), Input(name="y", shape=shape))
    node = Node(name="n0", operator="maximum", inputs=("x", "y"))
    place = case_place(Graph(inputs=inputs, nodes=(node,), outputs=("n0",)))
    assert place is not None
    assert lone.items() <= place.operators[0].facts.items()


DRAWN = {"bias": False, "dilation": [1] * 3, "groups": 1, "out_channels": 2, "padding": [0] * 3, "stride": [1] * 3}


@pytest.mark.parametrize(
    "node",
    [
        Node(name="n0", operator="conv3d", inputs=("x",), attributes={**DRAWN, "kernel": [3, 1, 2]}),
        Node(
            name="n0",
            operator="aten.conv3d.default",
            inputs=("x", "w"),
            attributes={"args": [{"value": "x"}, {"value": "w"}], "kwargs": {}},
            types=(TensorType(shape=(1, 2, 2, 4, 3)),),
        ),
    ],
)
def test_a_conv3d_says_how_deep_its_kernel_is(node: Node):
    given = (Input(name="x", shape=(1, 2, 4, 4, 4)), Input(name="w", shape=(2, 2, 3, 1, 2)))
    place = case_place(Graph(inputs=given, nodes=(node,), outputs=("n0",)))
    assert place is not None
    assert place.operators[0].facts["planes"] == 3


@pytest.mark.parametrize(
    ("attributes", "facts"),
    [
        ({"output": None, "factors": [2.25, 2.0]}, {"factor": 2.25, "doubled": 1}),
        ({"args": [{"value": "x"}, None, [2.25, 2.25]], "kwargs": {}}, {"factor": 2.25, "doubled": 1}),
        ({"output": None, "factors": [2.0, 2.0]}, {"factor": 2.0, "doubled": 0}),
        ({"output": None, "factors": [1.4, 1.4]}, {"factor": 1.4, "doubled": 1}),
        ({"output": None, "factors": [3.2, 3.2]}, {"factor": 3.2, "doubled": 0}),
        ({"output": [4, 4], "factors": None}, {}),
    ],
)
def test_an_upsample_says_whether_it_doubles_by_another_factor(attributes: Any, facts: dict[str, float]):
    node = Node(name="n0", operator="upsample_nearest2d", inputs=("x",), attributes=attributes)
    if "args" in attributes:  # a captured call knows what it returns
        types = (TensorType((1, 1, 4, 4), "float32"),)
        node = replace(node, operator="aten.upsample_nearest2d.vec", types=types)
    place = case_place(Graph(inputs=(Input(name="x", shape=(1, 1, 2, 2)),), nodes=(node,), outputs=("n0",)))
    assert place is not None
    found = place.operators[0].facts
    assert {name: found[name] for name in ("factor", "doubled") if name in found} == facts


@pytest.mark.parametrize(
    ("inputs", "holds"), [(("flags", "steps", "x"), 1), (("flags", "x", "steps"), 0), (("flags", "ones", "x"), 0)]
)
def test_an_arange_that_is_the_first_value_is_told(inputs: tuple[str, ...], holds: int):
    steps = {"start": 0.5, "step": 0.1}
    constants = (
        Constant(name="flags", shape=(4,), dtype="bool", kind="literal", parameters={"values": [True, False] * 2}),
        Constant(name="steps", shape=(4,), kind="arange", parameters=steps),
        Constant(name="ones", shape=(4,), kind="ones"),
    )
    node = Node(name="n0", operator="choose", inputs=inputs)
    place = case_place(replace(CASE.graph, constants=constants, nodes=(node,)))
    assert place is not None
    assert place.operators[0].facts["first_arange"] == holds


@pytest.mark.parametrize(
    ("shape", "result", "front_only"),
    [((1, 3, 2, 2), (3, 2, 2), 1), ((3, 1, 2, 2), (3, 2, 2), 0), ((2, 2), (1, 1, 2, 2), 1), ((1, 4), (2, 2), 0)],
)
def test_a_reshape_says_whether_only_axes_in_front_go(shape: tuple[int, ...], result: tuple[int, ...], front_only: int):
    tensors = {"x": TosaTensor("x", shape, "INT8"), "y": TosaTensor("y", result, "INT8")}
    block = TosaBlock("main", ("x",), ("y",), (TosaOperator(0, "RESHAPE", ("x",), ("y",), {}),), tensors)
    place = tosa_place(block, ["y"], {})
    assert place is not None
    assert place.operators[-1].facts["front_only"] == front_only


@pytest.mark.parametrize(("start", "behind"), [((0, 0, 0, 0), 0), ((0, 0, 2, 0), 1)])
def test_a_slice_says_whether_it_begins_behind_the_first_element(start, behind):
    tensors = {
        "x": TosaTensor("x", (1, 2, 4, 3), "INT8"),
        "start": TosaTensor("start", (4,), SHAPE, np.array(start, "<i8").tobytes()),
        "y": TosaTensor("y", (1, 2, 2, 3), "INT8"),
    }
    operators = (TosaOperator(0, "SLICE", ("x", "start"), ("y",), {}),)
    place = tosa_place(TosaBlock("main", ("x",), ("y",), operators, tensors), ["y"], {})
    assert place is not None
    assert {"outer": -2, "inner": -2, "behind": behind}.items() <= place.operators[-1].facts.items()


@pytest.mark.parametrize(("pads", "inner", "behind"), [((0, 0, 0, 0, 0, 2), -1, 0), ((0, 0, 1, 0, 0, 0), -2, 1)])
def test_a_pad_says_which_axes_grow_and_whether_before(pads: tuple[int, ...], inner: int, behind: int):
    shape = tuple(size + sum(pads[2 * axis : 2 * axis + 2]) for axis, size in enumerate((2, 4, 3)))
    tensors = {
        "x": TosaTensor("x", (2, 4, 3), "INT8"),
        "pads": TosaTensor("pads", (6,), SHAPE, np.array(pads, "<i8").tobytes()),
        "y": TosaTensor("y", shape, "INT8"),
    }
    block = TosaBlock("main", ("x",), ("y",), (TosaOperator(0, "PAD", ("x", "pads"), ("y",), {}),), tensors)
    place = tosa_place(block, ["y"], {})
    assert place is not None
    assert {"cut": 1, "inner": inner, "behind": behind}.items() <= place.operators[-1].facts.items()


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "wide"), [("INT8", "INT16", 0), ("INT8", "INT32", 1), ("INT32", "INT8", 1)]
)
def test_a_rescale_says_how_many_multipliers_it_has_and_whether_32_bits(dtype: str, out_dtype: str, wide: int):
    constants = {name: TosaTensor(name, (3,), kind, bytes(12)) for name, kind in (("m", "INT32"), ("s", "INT8"))}
    tensors = {"x": TosaTensor("x", (2, 3), dtype), "y": TosaTensor("y", (2, 3), out_dtype), **constants}
    operators = (TosaOperator(0, "RESCALE", ("x", "m", "s"), ("y",), {}),)
    place = tosa_place(TosaBlock("main", ("x",), ("y",), operators, tensors), ["y"], {})
    assert place is not None
    assert {"scales": 3, "wide": wide}.items() <= place.operators[-1].facts.items()


@pytest.mark.parametrize(("scale", "unlike"), [((2, 1, 4, 2), 0), ((2, 1, 4, 1), 1), ((3, 1, 4, 1), 1)])
def test_a_resize_says_whether_rows_and_columns_grow_by_unlike_factors(scale: tuple[int, ...], unlike: int):
    tensors = {
        "x": TosaTensor("x", (1, 2, 2, 3), "INT8"),
        "s": TosaTensor("s", (4,), SHAPE, np.array(scale, "<i8").tobytes()),
        "y": TosaTensor("y", (1, 3, 5, 3), "INT8"),
    }
    block = TosaBlock("main", ("x",), ("y",), (TosaOperator(0, "RESIZE", ("x", "s"), ("y",), {}),), tensors)
    place = tosa_place(block, ["y"], {})
    assert place is not None
    facts = place.operators[place.here[0]].facts
    assert (facts["unlike"], facts["rows"], facts["out_depth"]) == (unlike, 2, 3)


@pytest.mark.parametrize(
    ("one", "other", "facts"),
    [
        ((1 << 30, 19), (1 << 30, 20), {"factor": 2048, "factors_alike": 0}),
        ((1 << 30, 19), (1 << 30, 19), {"factor": 2048, "factors_alike": 1}),
        ((1 << 30, 19), (1 << 30, 31), {}),
        ((1 << 30, 19), (3 << 28, 29), {}),
    ],
)
def test_an_addition_says_by_which_whole_factors_its_operands_are_rescaled(
    one: tuple[int, int], other: tuple[int, int], facts: dict[str, int]
):
    numbers = {"m": one[0], "s": one[1], "n": other[0], "t": other[1], "z": 0}
    tensors = {
        name: TosaTensor(name, (1,), "INT32", np.array([number], "<i4").tobytes()) for name, number in numbers.items()
    }
    tensors |= {name: TosaTensor(name, (1, 4), "INT8") for name in "xabc"}
    made = [
        ("RESCALE", ("x", "m", "s", "z", "z"), "a"),
        ("RESCALE", ("x", "n", "t", "z", "z"), "b"),
        ("ADD", ("a", "b"), "c"),
    ]
    operators = tuple(TosaOperator(index, op, inputs, (out,), {}) for index, (op, inputs, out) in enumerate(made))
    place = tosa_place(TosaBlock("main", ("x",), ("c",), operators, tensors), ["c"], {})
    assert place is not None
    found = place.operators[place.here[0]].facts
    assert {name: found[name] for name in ("factor", "factors_alike") if name in found} == facts


@pytest.mark.parametrize(("out_pad", "padding"), [((-1, 0, -2, 5), 1), ((-2, 0, -2, 0), 0), ((0, -2, 1, 0), 3)])
def test_a_transposed_convolution_says_how_the_one_that_it_turns_into_is_padded(out_pad, padding):
    tensors = {
        "x": TosaTensor("x", (1, 2, 2, 1), "INT8"),
        "weight": TosaTensor("weight", (1, 3, 3, 1), "INT8", bytes(9)),
        "y": TosaTensor("y", (1, 4, 4, 1), "INT32"),
    }
    made = [
        TosaOperator(0, "CONST", (), ("weight",), {}),
        TosaOperator(1, "TRANSPOSE_CONV2D", ("x", "weight"), ("y",), {"Stride": (1, 1), "OutPad": out_pad}),
    ]
    place = tosa_place(TosaBlock("main", ("x",), ("y",), tuple(made), tensors), ["y"], {})
    assert place is not None
    assert [item.facts["turned_pad"] for item in place.operators if item.op != "INPUT"] == [padding]
