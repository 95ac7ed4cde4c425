"""What Vela's own list promises, operator by operator, and the finding that a broken promise is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from generators.programs import draw_programs
from harness.tosa.documented import beyond
from harness.tosa.findings import finding_of, is_refusal, refusal
from harness.tosa.program import Attribute, Operator, Program, Tensor

LISTED, COUNT = "", 60


@dataclass(frozen=True)
class Case:
    """One operator, with the shapes of what it reads and writes."""

    op: str
    reads: Sequence[tuple[Sequence[int], str]]
    writes: tuple[Sequence[int], str]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    constants: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def program(self) -> Program:
        operands = [
            Tensor(f"x{place}", tuple(shape), dtype, self.constants.get(place))
            for place, (shape, dtype) in enumerate(self.reads)
        ]
        shape, dtype = self.writes
        names = tuple(item.name for item in operands)
        step = Operator(self.op, names, ("y",), dict(self.attributes))
        given = tuple(item.name for item in operands if not item.constant)
        return Program((*operands, Tensor("y", tuple(shape), dtype)), (step,), given, ("y",))


def moved(op: str, dtype: str, **attributes: Attribute) -> Case:
    return Case(op, [((1, 2, 3, 4), dtype)], ((1, 2, 3, 4), dtype), attributes)


def resized(scale: tuple[int, ...], offset: tuple[int, int], border: tuple[int, int], mode: int = 1) -> Case:
    reads = [((1, 2, 2, 1), "INT8"), ((4,), "SHAPE"), ((2,), "SHAPE"), ((2,), "SHAPE")]
    return Case("RESIZE", reads, ((1, 3, 3, 1), "INT8"), {"Mode": mode}, {1: scale, 2: offset, 3: border})


def convolved(
    op: str, kernel: tuple[int, ...], dtype: str = "INT8", stride: tuple[int, ...] = (1, 1), constant: bool = True
) -> Case:
    size = (1, *(1 for _ in stride), 1)
    count = kernel[0] * kernel[1] * kernel[2]
    reads = [(size, dtype), ((1, *kernel, 1)[-len(size) :], "INT8"), ((1,), "INT32")]
    constants = {1: (1,) * count, 2: (0,)} if constant else {2: (0,)}
    return Case(op, reads, (size, "INT32" if dtype == "INT8" else "INT48"), {"Stride": stride}, constants)


def flat(op: str, rows: int, columns: int, **more) -> Case:
    return convolved(op, (1, rows, columns), **more)


@pytest.mark.parametrize(
    ("case", "limit"),
    [
        (moved("ABS", "INT32"), LISTED),
        (moved("SELECT", "INT8"), "SELECT: not in the list"),
        (moved("PAD", "BOOL"), "PAD: BOOL"),
        (moved("TABLE", "INT16"), "TABLE: INT16"),
        (moved("REVERSE", "INT8", Axis=1), LISTED),
        (moved("REVERSE", "INT8", Axis=3), "REVERSE: INT8, axis -1"),
        (moved("REVERSE", "INT32", Axis=1), "REVERSE: INT32, axis -3"),
        (moved("TRANSPOSE", "INT8", Perms=(3, 1, 0, 2)), LISTED),
        (moved("TRANSPOSE", "INT32", Perms=(0, 2, 1, 3)), LISTED),
        (moved("TRANSPOSE", "INT32", Perms=(0, 2, 3, 1)), "TRANSPOSE: INT32"),
        (moved("ARITHMETIC_RIGHT_SHIFT", "INT32", Round=True), LISTED),
        (moved("ARITHMETIC_RIGHT_SHIFT", "INT32", Round=False), "without rounding"),
        (moved("RESCALE", "INT48"), "RESCALE: 48 bits standing alone"),
        (Case("ABS", [((70000,), "INT8")], ((70000,), "INT8")), "ABS: an axis above 65536"),
        (Case("CAST", [((2,), "INT8")], ((2,), "INT32")), LISTED),
        (Case("CAST", [((2,), "INT32")], ((2,), "INT8")), "CAST: INT32 to INT8"),
        (Case("ARGMAX", [((1, 2, 9), "INT8")], ((1, 2), "INT32"), {"Axis": 2}), LISTED),
        (Case("ARGMAX", [((1, 2, 128), "INT8")], ((1, 2), "INT32"), {"Axis": 2}), "ARGMAX: shape"),
        (Case("ARGMAX", [((1, 2, 9), "INT8")], ((1, 9), "INT32"), {"Axis": 1}), "ARGMAX: a rank"),
        (Case("REDUCE_SUM", [((65, 1024), "INT32")], ((65, 1), "INT32"), {"Axis": 1}), "REDUCE_SUM: 66560 elements"),
        (moved("AVG_POOL2D", "INT8", Kernel=(8, 8), Stride=(3, 3), Pad=(0, 0, 1, 0)), LISTED),
        (moved("AVG_POOL2D", "INT8", Kernel=(9, 1), Stride=(1, 1), Pad=(0, 0, 1, 0)), "a padded kernel above 8"),
        (moved("MAX_POOL2D", "INT8", Kernel=(256, 1), Stride=(1, 3), Pad=(0, 0, 0, 0)), LISTED),
        (moved("MAX_POOL2D", "INT8", Kernel=(257, 1), Stride=(1, 1), Pad=(0, 0, 0, 0)), "a kernel of 257x1"),
        (moved("MAX_POOL2D", "INT8", Kernel=(2, 2), Stride=(1, 4), Pad=(0, 0, 0, 0)), "a stride of (1, 4)"),
        (resized((2, 1, 2, 1), (0, 0), (0, 0)), LISTED),
        (resized((8, 2, 16, 2), (-3, -7), (3, 7)), LISTED),
        (resized((2, 1, 3, 1), (0, 0), (0, 0)), "RESIZE: 3/1"),
        (resized((2, 1, 2, 1), (0, 0), (1, 1)), "RESIZE: 2/1 from 0, border 1"),
        (resized((2, 1, 2, 1), (0, 0), (0, 0), mode=2), "RESIZE: bilinear"),
        (flat("CONV2D", 64, 64, stride=(3, 3)), LISTED),
        (flat("CONV2D", 65, 1), "CONV2D: a kernel of 65x1"),
        (flat("CONV2D", 1, 1, stride=(4, 1)), "CONV2D: a stride of (4, 1)"),
        (flat("CONV2D", 1, 1, constant=False), "weights that are computed"),
        (flat("CONV2D", 1, 1, dtype="INT16"), "CONV2D: 48 bits without a RESCALE"),
        (flat("DEPTHWISE_CONV2D", 1, 1, dtype="INT16"), "DEPTHWISE_CONV2D: INT16"),
        (flat("TRANSPOSE_CONV2D", 2, 3, stride=(2, 2)), LISTED),
        (flat("TRANSPOSE_CONV2D", 1, 3, stride=(1, 2)), LISTED),
        (flat("TRANSPOSE_CONV2D", 2, 3, stride=(1, 2)), "TRANSPOSE_CONV2D: a stride of (1, 2)"),
        (convolved("CONV3D", (1, 2, 2), stride=(1, 1, 1)), LISTED),
        (convolved("CONV3D", (2, 1, 1), stride=(1, 1, 1)), "CONV3D: a kernel of 2 planes"),
    ],
)
def test_the_list_for_ethos_u55_has_it_or_says_which_limit_is_exceeded(case: Case, limit: str):
    told = beyond(case.program(), u85=False)
    assert told == LISTED if limit == LISTED else limit in told


@pytest.mark.parametrize(("rows", "limit"), [(64, LISTED), (65, "DEPTHWISE_CONV2D: a kernel of 65x1")])
def test_a_depthwise_convolution_has_the_kernels_of_others(rows: int, limit: str):
    reads: list[tuple[Sequence[int], str]] = [((1, rows, 1, 1), "INT8"), ((rows, 1, 1, 1), "INT8"), ((1,), "INT32")]
    constants = {1: (1,) * rows, 2: (0,)}
    case = Case("DEPTHWISE_CONV2D", reads, ((1, 1, 1, 1), "INT32"), {"Stride": (1, 1)}, constants)
    assert beyond(case.program(), u85=False) == limit


def test_a_batch_is_no_average_pool_of_ethos_u55():
    window: dict[str, Attribute] = {"Kernel": (1, 1), "Stride": (1, 1), "Pad": (0, 0, 0, 0)}
    pool = Case("AVG_POOL2D", [((2, 4, 4, 1), "INT8")], ((2, 4, 4, 1), "INT8"), window)
    assert beyond(pool.program(), u85=False) == "AVG_POOL2D: a batch"
    assert beyond(pool.program(), u85=True) == LISTED


def test_ethos_u85_has_the_whole_profile_but_for_weights_that_are_computed():
    assert beyond(moved("SELECT", "INT8").program(), u85=True) == LISTED
    assert beyond(flat("TRANSPOSE_CONV2D", 2, 3, stride=(3, 1)).program(), u85=True) == LISTED
    computed = flat("TRANSPOSE_CONV2D", 2, 3, stride=(1, 1), constant=False)
    assert beyond(computed.program(), u85=True) == "TRANSPOSE_CONV2D: weights that are computed"


@pytest.mark.parametrize("family", ["u55", "u65", "u85"])
def test_most_of_what_is_drawn_is_in_the_list(family: str):
    """A list that promised nothing would find nothing."""
    programs = draw_programs(1, 0, COUNT, family)
    assert sum(beyond(item, family == "u85") == LISTED for item in programs) > COUNT / 2


def test_a_refusal_has_the_bucket_of_a_lowering_that_ends_so_and_is_at_the_operator_that_vela_names():
    program = resized((2, 1, 2, 1), (0, 0), (0, 0)).program()
    found = finding_of(
        refusal(program, "Non-passthrough operation (Resize) could not run on NPU"), program, "ethos-u55-128", ""
    )
    assert found.bucket == (
        "v1/crash/exception/vela/-/ethos-u55/RuntimeError|Non-passthrough-operation-(Resize)-could-not-run-on-NPU"
        "|ethosu.vela.vela:process_regor"
    )
    assert str(found.place) == "INPUT -> [RESIZE]"
    assert is_refusal(found)
