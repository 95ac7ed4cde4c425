"""Why a flipped bit changes nothing: reasons that are checked on traces, not asserted.

Each reason is a property of both traces, the good one and the flipped one:

* ``in front of the stream``: versions and fillers among the driver actions, which say who compiled it.
* ``no operation reads it``: every register that an operation read, every element of memory that it
  touched and every constant that it used is the same. What differs is in no step at all.
* ``timing only``: the same, and the register is one that only orders operations or sizes blocks. The
  static checks (hazards, overlaps, register limits) have read the flipped stream and found nothing.
* ``same elements``: registers that say where feature maps lie differ, the elements touched do not (the
  base of a tile without elements, the stride of an axis of one element).
* ``same taps``: kernel registers differ, the positions of taps and outputs do not.
* ``same weights``: weights or scale records are stored otherwise, and decode to the same numbers.
* ``accumulators suffice``: the width of accumulators differs, which the model does not narrow, and no sum
  needs more than the smaller one (``reach``).
* ``same scalar``: the registers of a scalar operand differ, its value does not.
* ``operands swapped``: the order of a commutative operation's operands differs.
* ``weights of zero``: more or fewer IFM channels, whose weights are zero.
* ``tap on padding``: weights differ that meet nothing but padding.
* ``below resolution``: scaling or limits differ, and no sum that can occur is taken to another result
  (``reach``).
* ``out of reach``: entries of a table differ that no value selects.
* ``masked downstream``: a step stores something else, and a later one makes no difference of it.

``operands swapped`` and ``masked downstream`` were seen on all inputs that were tried, the others hold for
any. A bit that is not dead, but has an effect only on sums that no
input met, is *rare*; those sums are counted. (Most are few; some lie where the sums' interval, which
knows nothing of how the operands depend on each other, is larger than what can occur.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.elementwise import ADD, MAX, MIN, MUL
from harness.ethosu.records import Step
from harness.ethosu.state import Registers, kernel_of
from tests.streams.flips import COMMANDS, DRIVER_ACTIONS, SCALES, Flip
from tests.streams.flips import UNREAD as NOTHING
from tests.streams.flips import WEIGHTS as STREAM
from tests.streams.reach import operands_alike, same_scalar, stages_differ, sums_fit, tables_differ
from tests.streams.recording import Record, Trace

FRONT, UNREAD, TIMING, ELEMENTS, TAPS, WEIGHTS, WIDTH, SCALAR, SWAPPED, ZEROS, PADDING, RESOLUTION, REACH, MASKED = (
    "in front of the stream",
    "no operation reads it",
    "timing only",
    "same elements",
    "same taps",
    "same weights",
    "accumulators suffice",
    "same scalar",
    "operands swapped",
    "weights of zero",
    "tap on padding",
    "below resolution",
    "out of reach",
    "masked downstream",
)
REASONS = (
    FRONT,
    UNREAD,
    TIMING,
    ELEMENTS,
    TAPS,
    WEIGHTS,
    WIDTH,
    SCALAR,
    SWAPPED,
    ZEROS,
    PADDING,
    RESOLUTION,
    REACH,
    MASKED,
)
Pairs = Sequence[tuple[Record, Record]]

_TIMING = {
    *("SET_BLOCKDEP", "SET_PARALLEL_MODE", "SET_IFM_IB_END", "SET_IFM2_IB_START", "SET_AB_START"),
    *("SET_OFM_BLK_HEIGHT_M1", "SET_OFM_BLK_WIDTH_M1", "SET_OFM_BLK_DEPTH_M1"),
    *("OP_KERNEL_WAIT", "OP_DMA_WAIT", "OP_STOP", "OP_IRQ", "OP_PMU_MASK", "SET_KERNEL_STRIDE"),
    *("SET_RESIZE_X", "SET_RESIZE_Y"),
}
_LAYOUT = {
    f"{role}_{name}"
    for role in ("IFM", "IFM2", "OFM")
    for name in (
        *("BASE0", "BASE1", "BASE2", "BASE3", "STRIDE_X", "STRIDE_Y", "STRIDE_C"),
        *("HEIGHT0_M1", "HEIGHT1_M1", "WIDTH0_M1"),
    )
}
_AXES = {
    ("IFM_BROADCAST", "value"),
    *(("IFM2_BROADCAST", f) for f in ("value", "broadcast_h", "broadcast_w", "broadcast_c")),
}
"""What IFM2 repeats: seen in the elements that are read."""
_KERNEL = {
    *("KERNEL_STRIDE", "KERNEL_HEIGHT_M1", "KERNEL_WIDTH_M1"),
    *("IFM_PAD_TOP", "IFM_PAD_LEFT", "IFM_PAD_BOTTOM", "IFM_PAD_RIGHT"),
}
_STREAMS = {
    *(f"WEIGHT{core}_{name}" for core in ("", "1", "2", "3") for name in ("BASE", "LENGTH")),
    *("WEIGHT_REGION", "WEIGHT_FORMAT", "SCALE_REGION", "OFM_BLK_DEPTH_M1"),
    *("SCALE_BASE", "SCALE_LENGTH", "SCALE1_BASE", "SCALE1_LENGTH"),
}
_WINDOWED = ("CONV", "DEPTHWISE", "POOL")


@dataclass(frozen=True)
class Explanation:
    """Why a flip has no effect, or hardly any.

    :param rare: it has one, on sums or operands that no input gave; ``detail`` says which.
    """

    detail: str
    rare: bool = False


def explained(
    good: Sequence[Trace], flipped: Sequence[Trace], flip: Flip, accelerator: Accelerator
) -> Explanation | None:
    """Why these traces, pairs on the same inputs whose outputs are equal, had to be; None if it is not clear."""
    if any(len(one.records) != len(other.records) for one, other in zip(good, flipped, strict=True)):
        return None
    runs = [list(zip(one.records, other.records, strict=True)) for one, other in zip(good, flipped, strict=True)]
    if not all(_same_stored(one, other) for one, other in chain(*runs)):
        return Explanation(MASKED)
    steps = list(zip(*runs, strict=True))
    changed = [pairs for pairs in steps if not _equal(*pairs[0])]
    if not changed and flip.place == "SET_ACC_FORMAT":
        return Explanation(WIDTH) if all(sums_fit(pairs[0][0], accelerator) for pairs in steps) else None
    if not changed:
        return _unseen(flip)
    found = [_why(pairs, accelerator) for pairs in changed]
    if any(item is None for item in found):
        return None
    known = [item for item in found if item is not None]
    rare = list(dict.fromkeys(item.detail for item in known if item.rare))
    return Explanation("; ".join(rare), rare=True) if rare else max(known, key=lambda item: REASONS.index(item.detail))


def _unseen(flip: Flip) -> Explanation | None:
    """For bits that no step has seen."""
    if flip.place == DRIVER_ACTIONS:
        return Explanation(FRONT)
    if flip.kind not in (COMMANDS, NOTHING):
        # the bytes of a stream are read, and decode to the same; a constant must differ where it is read
        return Explanation(WEIGHTS) if flip.kind in (STREAM, SCALES) else None
    return Explanation(TIMING if flip.place in _TIMING else UNREAD)


def _why(pairs: Pairs, accelerator: Accelerator) -> Explanation | None:
    """Why a step that differs in what it read has stored the same.

    :param pairs: the step on each input.
    """
    one, other = pairs[0]
    fields = set(one.registers) ^ set(other.registers)
    differing = {name for name, field, _ in fields if (name, field) not in _AXES}
    if _elements(one) == _elements(other) and _same_taps(one, other) and _same_decoded(one, other):
        for reason, names in ((ELEMENTS, _LAYOUT), (TAPS, _LAYOUT | _KERNEL), (WEIGHTS, _LAYOUT | _KERNEL | _STREAMS)):
            if fields and differing <= names:
                return Explanation(reason)
        if differing <= {"IFM2_PRECISION", "IFM2_SCALAR", "OP_SCALAR"} and same_scalar(one, other, accelerator):
            return Explanation(SCALAR)
    if differing == {"IFM2_BROADCAST"} and _elements(one) == _elements(other) and all(map(_swapped, pairs)):
        return Explanation(SWAPPED)
    if differing == {"IFM_DEPTH_M1"} and _zero_channels(one, other):
        return Explanation(ZEROS)
    if _weights_on_padding(one, other):
        return Explanation(PADDING)
    if _elements(one) != _elements(other):
        return None
    for reason, compare in ((RESOLUTION, stages_differ), (REACH, tables_differ)):
        count = compare(one, other, differing - _LAYOUT, accelerator)
        if count is not None and count[0]:
            return Explanation(f"{count[0]} of {count[1]} sums of the interval", rare=True)
        if count is not None:
            return Explanation(reason)
    met = operands_alike(pairs, accelerator)
    return Explanation(f"no operand from {met[0]} to {met[1]}, which inputs gave, differs", rare=True) if met else None


def _equal(one: Record, other: Record) -> bool:
    """Whether nothing that a step depends on differs, but for the bytes of streams that decode to the same."""
    same = one.registers == other.registers and _same_decoded(one, other) and one.memory == other.memory
    return same and _same_operands(one, other)


def _same_operands(one: Record, other: Record) -> bool:
    """Of an elementwise operation: the first and the second (a constant may differ without a register)."""
    pairs = zip(one.operands, other.operands, strict=False)
    return len(one.operands) == len(other.operands) and all(np.array_equal(a, b) for a, b in pairs)


def _differing(one: Record, other: Record) -> set[str]:
    """Registers that one of the two read and the other did not, or not with this value."""
    return {name for name, _, _ in set(one.registers) ^ set(other.registers)}


def _elements(record: Record) -> list[object]:
    """What was touched, apart from the bytes of weight and scale streams."""
    streams = {(item.region, item.start, item.end) for item in record.step.reads if item.role in ("WEIGHT", "SCALE")}
    return [item for item in record.memory if item[1:] not in streams]  # type: ignore[index]


def _same_decoded(one: Record, other: Record) -> bool:
    """Weights, scale records and tables."""
    for name in ("weights", "scales", "tables"):
        if len(getattr(one, name)) != len(getattr(other, name)):
            return False
    if not all(np.array_equal(a, b) for a, b in zip(one.tables, other.tables, strict=True)):
        return False
    same = all(np.array_equal(a.values, b.values) for a, b in zip(one.weights, other.weights, strict=True))
    return same and _same_scales(one, other)


def _same_scales(one: Record, other: Record) -> bool:
    return len(one.scales) == len(other.scales) and all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for a, b in zip(one.scales, other.scales, strict=True)
        for name in ("bias", "scale", "shift")
    )


def _same_stored(one: Record, other: Record) -> bool:
    if one.stored is None or other.stored is None:
        return one.stored is other.stored
    return np.array_equal(one.stored, other.stored)


def _same_taps(one: Record, other: Record) -> bool:
    if one.step.kind not in _WINDOWED or other.step.kind != one.step.kind:
        return one.step.kind == other.step.kind and not _differing(one, other) & _KERNEL
    return _positions(one.step) == _positions(other.step)


def _positions(step: Step) -> tuple[object, ...]:
    """Rows and columns of the IFM that every tap of every output is on."""
    registers = Registers.__new__(Registers)
    registers.held = dict(step.registers)
    kernel = kernel_of(registers)
    size = [step.registers[f"OFM_{axis}_M1"]["value"] + 1 for axis in ("HEIGHT", "WIDTH")]
    return (
        [range(-kernel.top, kernel.height * kernel.dilation_y - kernel.top, kernel.dilation_y)],
        [range(-kernel.left, kernel.width * kernel.dilation_x - kernel.left, kernel.dilation_x)],
        [range(0, size[0] * kernel.stride_y, kernel.stride_y)],
        [range(0, size[1] * kernel.stride_x, kernel.stride_x)],
    )


def _swapped(pair: tuple[Record, Record]) -> bool:
    """Whether the operands of a commutative operation are those of the other, in the other order."""
    one, other = pair
    if one.step.command.fields.get("value") not in (MUL, ADD, MIN, MAX) or len(one.operands) != 2:
        return False
    return all(np.array_equal(a, b) for a, b in zip(one.operands, reversed(other.operands), strict=True))


def _zero_channels(one: Record, other: Record) -> bool:
    """Whether the convolutions are the same but for IFM channels whose weights are all zero."""
    if one.step.kind != "CONV" or len(one.weights) != 1 or len(other.weights) != 1:
        return False
    first, second = one.weights[0].values, other.weights[0].values
    depth = min(first.shape[3], second.shape[3])
    if first.shape[:3] != second.shape[:3] or first[..., depth:].any() or second[..., depth:].any():
        return False
    same = np.array_equal(first[..., :depth], second[..., :depth]) and _same_scales(one, other)
    return same and _written(one) == _written(other)


def _written(record: Record) -> list[object]:
    return [item for item in record.memory if item[0] == "write"]  # type: ignore[index]


def _weights_on_padding(one: Record, other: Record) -> bool:
    """Whether the weights that differ belong to taps that lie on padding for every output."""
    if one.registers != other.registers or not one.weights or len(one.weights) != len(other.weights):
        return False
    differs = np.zeros(one.weights[0].values.shape[1:3], bool)
    for a, b in zip(one.weights, other.weights, strict=True):
        differs |= (a.values != b.values).any(axis=(0, 3))
    return bool(differs.any()) and not (differs & _meets_input(one.step)).any()


def _meets_input(step: Step) -> np.ndarray:
    """For each tap of a kernel, whether it lies inside the IFM for some output."""
    registers = Registers.__new__(Registers)
    registers.held = dict(step.registers)
    kernel = kernel_of(registers)

    def along(count: int, stride: int, taps: int, dilation: int, reach: int, before: int, after: int) -> np.ndarray:
        size = (count - 1) * stride + reach - before - after
        at = np.arange(count)[:, None] * stride + np.arange(taps) * dilation - before
        return ((at >= 0) & (at < size)).any(axis=0)

    height, width = (step.registers[f"OFM_{axis}_M1"]["value"] + 1 for axis in ("HEIGHT", "WIDTH"))
    rows = along(height, kernel.stride_y, kernel.height, kernel.dilation_y, kernel.reach_y, kernel.top, kernel.bottom)
    columns = along(width, kernel.stride_x, kernel.width, kernel.dilation_x, kernel.reach_x, kernel.left, kernel.right)
    return rows[:, None] & columns
