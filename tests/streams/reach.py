"""All sums that a step can form, and how many of them two versions of its last stage treat differently.

The *last stage* takes a sum from the accumulators to the value that is stored or looked up: bias,
scale, shift with rounding, zero point, clipping. It never decreases, so it is known by the sums at
which its result grows, and two versions of it are compared exactly by comparing those. Sums lie in an
interval that follows from the types of the operands and from the weights: every sum that can occur is
in it, and more.

Stages are the model's own functions, called with the registers of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from harness.ethosu import elementwise, output
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import _rounding_term
from harness.ethosu.memory import Memory
from harness.ethosu.npu import Npu
from harness.ethosu.records import Step
from harness.ethosu.resize import BILINEAR
from harness.ethosu.state import Registers, kernel_of
from tests.streams.recording import Record

Ints = NDArray[np.int64]
Count = tuple[int, int]
"""How many, and of how many."""

_STAGE = {"OFM_SCALE", "OFM_PRECISION", "ACTIVATION_MIN", "ACTIVATION_MAX"}
_MOST_RESULTS, _MOST_OPERANDS = 1 << 17, 1 << 23
_MONOTONE = (elementwise.MUL, elementwise.ADD, elementwise.SUB, elementwise.MIN, elementwise.MAX)
_MAX, _AVERAGE, _REDUCE_SUM, _SUM, _NONE, _MIN = range(6)
_RESET, _FROM_IFM2 = 0, 2
_NO_STORAGE = 3


def stages_differ(one: Record, other: Record, differing: set[str], accelerator: Accelerator) -> Count | None:
    """For how many sums the last stages differ, of all channels together; None if it cannot be said.

    :param one: a step; ``other`` is the same but for what was flipped, and touches the same elements.
    :param differing: registers that they read differently.
    """
    if not differing <= _STAGE or not _only_rounding(one, other) or not _same_weights(one, other):
        return None
    found = total = 0
    for channel, (low, high) in enumerate(_sums(one, accelerator)):
        if differing or _record_differs(one, other, channel):
            count = _thresholds_differ(one, other, channel, low, high, accelerator)
            if count is None:
                return None
            found += count
            total += high - low + 1
    return (found, total) if total else None


def tables_differ(one: Record, other: Record, differing: set[str], accelerator: Accelerator) -> Count | None:
    """For how many values that can be looked up the tables say something else; None if it cannot be said."""
    if differing or not _same_weights(one, other) or len(one.tables) != 1 or len(other.tables) != 1:
        return None
    ends = [_stage(one, channel, accelerator)(np.array(pair)) for channel, pair in enumerate(_sums(one, accelerator))]
    if not ends:
        return None
    least, most = min(int(pair[0]) for pair in ends), max(int(pair[1]) for pair in ends)
    if most - least > _MOST_RESULTS:
        return None
    values = np.arange(least, most + 1)
    found = int(np.count_nonzero(_looked_up(one, values, accelerator) != _looked_up(other, values, accelerator)))
    return found, len(values)


def sums_fit(record: Record, accelerator: Accelerator) -> bool:
    """Whether every sum of a step fits into 32 bits, the least that an accumulator has."""
    if record.step.kind not in ("CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "RESIZE"):
        return True
    sums = _sums(record, accelerator)
    return bool(sums) and all(low >= -(1 << 31) and high < 1 << 31 for low, high in sums)


def same_scalar(one: Record, other: Record, accelerator: Accelerator) -> bool:
    """Whether the second operand of both is a scalar of one value."""
    values = []
    for record in (one, other):
        npu = _npu(record.step, accelerator)
        if accelerator.u85:
            if _value(record.step, "IFM2_PRECISION", "storage") != _NO_STORAGE:
                return False
            values.append(elementwise.elementwise_operand(npu, "IFM2", (1, 1, 1)))
        else:
            if not _value(record.step, "IFM2_BROADCAST", "constant"):
                return False
            values.append(elementwise._second_u55(npu, (1, 1, 1)))
    return np.array_equal(*values)


def operands_alike(pairs: Sequence[tuple[Record, Record]], accelerator: Accelerator) -> Count | None:
    """The smallest and the largest first operand of an elementwise step on all inputs, if the steps treat all alike.

    Both have one value, or one a channel, as their second operand, which may differ.
    """
    steps = [record.step for record in pairs[0]]
    if steps[0].kind != "ELEMENTWISE" or steps[0].registers != steps[1].registers:
        return None
    if any(len(record.operands) != 2 for pair in pairs for record in pair):
        return None
    seconds = [np.unique(record.operands[1]) for record in pairs[0]]
    if any(len(second) != 1 for second in seconds):
        return None
    low = min(int(pair[0].operands[0].min()) for pair in pairs)
    high = max(int(pair[0].operands[0].max()) for pair in pairs)
    if high - low > _MOST_OPERANDS:
        return None
    values = np.arange(low, high + 1, dtype=np.int64)
    results = []
    for record, second in zip(pairs[0], seconds, strict=True):
        mode = record.step.command.fields["value"]
        applied = elementwise._apply(_npu(record.step, accelerator), mode, values, second)
        results.append(_stage(record, 0, accelerator)(applied))
    return (low, high) if np.array_equal(*results) else None


def _same_weights(one: Record, other: Record) -> bool:
    pairs = list(zip(one.weights, other.weights, strict=False))
    operands = list(zip(one.operands, other.operands, strict=False))
    return all(np.array_equal(a.values, b.values) for a, b in pairs) and all(np.array_equal(a, b) for a, b in operands)


def _npu(step: Step, accelerator: Accelerator, **changes: dict[str, int]) -> Npu:
    registers = Registers.__new__(Registers)
    registers.held = {**step.registers, **changes}
    return Npu(accelerator, Memory(b"", 0, 0, 0), registers, command=step.command)


def _value(step: Step, name: str, field: str = "value") -> int:
    return step.registers[name][field]


# ---- the last stage -------------------------------------------------------------------------------------------------


def _only_rounding(one: Record, other: Record) -> bool:
    """Whether types, layout and modes of the OFM are equal."""
    fields = [dict(record.step.registers["OFM_PRECISION"]) for record in (one, other)]
    for held in fields:
        held.pop("round_mode", None)
    return fields[0] == fields[1]


def _record_differs(one: Record, other: Record, channel: int) -> bool:
    return bool(one.scales) and any(
        getattr(one.scales[0], name)[channel] != getattr(other.scales[0], name)[channel]
        for name in ("bias", "scale", "shift")
    )


def _stage(record: Record, channel: int, accelerator: Accelerator):  # type: ignore[no-untyped-def]
    """From sums to what is stored or looked up."""
    npu = _npu(record.step, accelerator, ACTIVATION={**record.step.registers["ACTIVATION"], "function": 0})
    records = None
    if record.scales:
        held = record.scales[0]
        only = {name: getattr(held, name)[channel : channel + 1] for name in ("bias", "scale", "shift")}
        records = replace(held, **only)
    zero_point = _value(record.step, "OFM_ZERO_POINT")

    def stage(sums: Ints) -> Ints:
        values = output.scaled(npu, np.asarray(sums, np.int64).reshape(-1, 1, 1), records)
        return np.asarray(output._activated(npu, values + zero_point)).ravel()

    return stage


def _thresholds_differ(
    one: Record, other: Record, channel: int, low: int, high: int, accelerator: Accelerator
) -> int | None:
    """How many sums from ``low`` to ``high`` the two stages take to different results."""
    stages = [_stage(record, channel, accelerator) for record in (one, other)]
    ends = np.array([stage(np.array([low, high])) for stage in stages])
    least, most = int(ends[:, 0].min()), int(ends[:, 1].max())
    if most - least > _MOST_RESULTS:
        return 0 if _same_rounding(one, other, accelerator) else None
    results = np.arange(least + 1, most + 1)
    first, second = (_thresholds(stage, results, low, high) for stage in stages)
    return _covered(np.minimum(first, second), np.maximum(first, second))


def _thresholds(stage, results: Ints, low: int, high: int) -> Ints:  # type: ignore[no-untyped-def]
    """For each result the smallest sum that is taken to it or above; ``high + 1`` if none is."""
    bottom = np.full(len(results), low, np.int64)
    top = np.full(len(results), high + 1, np.int64)
    while (bottom < top).any():
        middle = (bottom + top) >> 1
        reached = stage(np.minimum(middle, high)) >= results
        reached |= middle > high
        top, bottom = np.where(reached, middle, top), np.where(reached, bottom, np.minimum(middle + 1, top))
    return top


def _covered(starts: Ints, ends: Ints) -> int:
    """How many numbers lie in at least one of the intervals; both arrays ascend."""
    before = np.concatenate([starts[:1], np.maximum.accumulate(ends)[:-1]])
    return int(np.maximum(ends - np.maximum(starts, before), 0).sum())


def _same_rounding(one: Record, other: Record, accelerator: Accelerator) -> bool:
    """Whether only the rounding mode differs, and adds the same to every product."""
    if one.scales or other.scales:
        return False
    held = [{**record.step.registers["OFM_SCALE"], "round_mode": 0} for record in (one, other)]
    limits = [[_value(record.step, f"ACTIVATION_{end}") for end in ("MIN", "MAX")] for record in (one, other)]
    if held[0] != held[1] or limits[0] != limits[1]:
        return False
    shift = np.array(held[0]["shift"], np.int64)
    modes = [output.rounding_of(_npu(record.step, accelerator)) for record in (one, other)]
    signs = np.array([-1, 0, 1], np.int64)
    terms = [np.broadcast_to(_rounding_term(signs, shift, mode, held[0].get("dbl_rnd", 0)), (3,)) for mode in modes]
    return np.array_equal(*terms)


def _looked_up(record: Record, values: Ints, accelerator: Accelerator) -> Ints:
    table = record.tables[0]
    with mock.patch.object(output, "lut_table", return_value=table):
        return np.asarray(output._activated(_npu(record.step, accelerator), values.reshape(-1, 1, 1))).ravel()


# ---- the sums -------------------------------------------------------------------------------------------------------


def _sums(record: Record, accelerator: Accelerator) -> list[tuple[int, int]]:
    """The smallest and the largest sum of each output channel; empty if they are not known."""
    step = record.step
    channels = _value(step, "OFM_DEPTH_M1") + 1
    found: list[tuple[int, int]] = []
    if step.kind in ("CONV", "DEPTHWISE"):
        found = _products(record, channels)
    elif step.kind == "POOL":
        found = _pooled(step, channels)
    elif step.kind == "ELEMENTWISE":
        monotone = step.command.fields["value"] in _MONOTONE
        found = [_elementwise(step, accelerator)] * channels if monotone else []
    elif step.kind == "RESIZE" and step.command.fields["value"] == BILINEAR:
        units = [_value(step, f"RESIZE_{axis}_SCALE_N_M1") + 1 for axis in "XY"]
        low, high = _operand(step, "IFM")
        found = [(low * units[0] * units[1] << 16, high * units[0] * units[1] << 16)] * channels
    if not accelerator.u85 or step.kind in ("ELEMENTWISE", "RESIZE"):
        return found
    start = _value(step, "ACC_FORMAT", "input")
    if start == _FROM_IFM2:
        low, high = _operand(step, "IFM2")
        return [(first + low, last + high) for first, last in found]
    return found if start == _RESET else []


def _operand(step: Step, role: str) -> tuple[int, int]:
    """The ends of an operand's type, less its zero point."""
    bits, signed = 8 << _value(step, f"{role}_PRECISION", "precision"), _value(step, f"{role}_PRECISION", "type")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    zero_point = _value(step, f"{role}_ZERO_POINT")
    return low - zero_point, high - zero_point


def _products(record: Record, channels: int) -> list[tuple[int, int]]:
    low, high = _operand(record.step, "IFM")
    if not record.weights:  # they come from IFM2
        ends = [a * b for a in (low, high) for b in _operand(record.step, "IFM2")]
        depth = _value(record.step, "IFM_DEPTH_M1") + 1
        return [(depth * min(ends), depth * max(ends))] * channels
    weights = record.weights[0].values.astype(np.int64).reshape(channels, -1)
    least = np.minimum(np.minimum(weights * low, weights * high), 0).sum(axis=1)
    most = np.maximum(np.maximum(weights * low, weights * high), 0).sum(axis=1)
    return list(zip(least.tolist(), most.tolist(), strict=True))


def _pooled(step: Step, channels: int) -> list[tuple[int, int]]:
    mode = step.command.fields["value"]
    if mode == _NONE:
        return [(0, 0)] * channels
    if mode not in (_MAX, _AVERAGE, _REDUCE_SUM, _SUM, _MIN):
        return []
    registers = Registers.__new__(Registers)
    registers.held = dict(step.registers)
    kernel = kernel_of(registers)
    count = kernel.height * kernel.width if mode in (_AVERAGE, _SUM) else 1
    if mode == _REDUCE_SUM:
        count = _value(step, "IFM_DEPTH_M1") + 1
    low, high = _operand(step, "IFM")
    return [(min(low, low * count), max(high, high * count))] * channels


def _elementwise(step: Step, accelerator: Accelerator) -> tuple[int, int]:
    """Of an operation that is monotone in each operand: its ends are at the operands' ends."""
    mode = step.command.fields["value"]
    npu = _npu(step, accelerator)

    def ends(_: Npu, role: str, shape: tuple[int, int, int]) -> Ints:
        return np.array(_operand(step, role), np.int64).reshape((1, 2, 1) if role == "IFM" else (2, 1, 1))

    def ends_u85(npu: Npu, role: str, shape: tuple[int, int, int]) -> Ints:
        scalar = _value(step, f"{role}_PRECISION", "storage") == _NO_STORAGE
        return original(npu, role, shape) if scalar else ends(npu, role, shape)

    original = elementwise.elementwise_operand
    with mock.patch.multiple(elementwise, operand=ends, elementwise_operand=ends_u85):
        operands = elementwise._operands_u85 if accelerator.u85 else elementwise._operands_u55
        values = elementwise._apply(npu, mode, *operands(npu, mode, (2, 2, 1)))
    return int(values.min()), int(values.max())
