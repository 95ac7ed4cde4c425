"""Do two payloads make the NPU do the same? Compared as operations read them, not byte for byte.

Commands must be the same, with the same fields. Constants may differ where no operation takes the
difference: in padding between streams, and in what a weight stream holds beyond the tensor of its
operation. Vela 5.1.0 fills the latter from uninitialised memory for some convolutions on Ethos-U85
(``corpus/found/vela-u85-weights-for-width``), so its payloads are not the same from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.vela import VelaPayload, decode_vela
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.commands import decode_commands, driver_actions
from harness.ethosu.disassembly import subjects
from harness.ethosu.operation_text import Subject
from harness.ethosu.output import GLOBAL
from harness.ethosu.records import Command, StreamError
from harness.ethosu.state import kernel_of
from harness.ethosu.weight_registers import Range, scale_layout, scale_ranges, weight_geometry, weight_ranges
from harness.ethosu.weights import decode_scales, decode_weights

Decode = Callable[[Subject, tuple[bytes, ...]], Mapping[str, Array]]


def payload_difference(one: bytes, other: bytes) -> str:
    """What makes two payloads of one TOSA graph different programs; empty if nothing does."""
    if one == other:
        return ""
    try:
        return decoded_difference(decode_vela(one), decode_vela(other))
    except BadInput as error:
        return f"{len(one)} and then {len(other)} bytes; {error}"


def _field_differences(one: VelaPayload, other: VelaPayload) -> Iterator[str]:
    for name in ("inputs", "outputs", "scratch_size", "fast_scratch_size"):
        before, after = getattr(one, name), getattr(other, name)
        if before != after:
            yield f"{name} {before} and then {after}"


def decoded_difference(one: VelaPayload, other: VelaPayload) -> str:
    """What makes two decoded payloads of one TOSA graph different programs; empty if nothing does."""
    if found := next(_field_differences(one, other), ""):
        return found
    try:
        accelerators = [driver_actions(payload.commands).accelerator for payload in (one, other)]
        if accelerators[0] != accelerators[1]:
            return f"a stream for {accelerators[0].name} and then one for {accelerators[1].name}"
        return program_difference(one, other, accelerators[0])
    except StreamError as error:
        return f"{error}, and the bytes are not the same"


def program_difference(one: VelaPayload, other: VelaPayload, accelerator: Accelerator) -> str:
    """The first thing that the NPU does differently, in one line; empty if there is none.

    :raises StreamError: a stream cannot be decoded.
    """
    commands = [decode_commands(payload.commands, accelerator) for payload in (one, other)]
    if found := _commands_differ(*commands):
        return found
    if one.weights == other.weights:
        return ""
    taken = np.zeros(max(len(one.weights), len(other.weights)), bool)
    walks = (subjects(payload, each, accelerator) for payload, each in zip((one, other), commands, strict=True))
    for (_, first), (_, second) in zip(*walks, strict=True):
        if first is None or second is None or not _has_weights(first):
            continue
        for decode, ranges in _streams(first):
            places = [(first.constants.origin(*place), place[2]) for place in ranges if place[2]]
            if any(origin is None for origin, _ in places):
                continue  # known only when it runs: its bytes count as they are
            for origin, length in places:
                taken[origin or 0 : (origin or 0) + length] = True
            if found := _decoded_differ(decode, (first, second), ranges):
                return f"step {first.step.index} {first.step.kind} at {first.step.command.offset:#06x}: {found}"
    return _bytes_differ(one.weights, other.weights, taken)


def _commands_differ(one: tuple[Command, ...], other: tuple[Command, ...]) -> str:
    for first, second in zip(one, other, strict=False):
        if (first.name, first.fields) != (second.name, second.fields):
            texts = [f"{item.name} {dict(item.fields)}" for item in (first, second)]
            return f"command at {first.offset:#06x} is {texts[0]} and then {texts[1]}"
    return "" if len(one) == len(other) else f"{len(one)} and then {len(other)} commands"


def _has_weights(subject: Subject) -> bool:
    return subject.step.kind in ("CONV", "DEPTHWISE") and not subject.step.command.fields.get("value")


def _streams(subject: Subject) -> Iterator[tuple[Decode, list[Range]]]:
    """The streams of an operation, and what decodes them."""
    yield _weights, weight_ranges(subject.registers, subject.accelerator)
    if subject.registers.get("OFM_PRECISION", "scale_mode") != GLOBAL:
        yield _scales, scale_ranges(subject.registers, subject.accelerator)


def _decoded_differ(decode: Decode, pair: tuple[Subject, Subject], ranges: list[Range]) -> str:
    first, second = (
        tuple(subject.constants.find(*place) or b"" if place[2] else b"" for place in ranges) for subject in pair
    )
    if first == second:
        return ""
    one, other = decode(pair[0], first), decode(pair[1], second)
    for name, values in one.items():
        if count := np.count_nonzero(values != other[name]):
            return f"{count} of {values.size} {name} differ"
    return ""


def _weights(subject: Subject, streams: tuple[bytes, ...]) -> Mapping[str, Array]:
    registers, accelerator = subject.registers, subject.accelerator
    depthwise = subject.step.kind == "DEPTHWISE"
    depth = 1 if depthwise else registers.get("IFM_DEPTH_M1") + 1
    geometry = weight_geometry(registers, kernel_of(registers), depth, accelerator, depthwise=depthwise)
    return {"weights": decode_weights(streams, geometry, accelerator).values}


def _scales(subject: Subject, streams: tuple[bytes, ...]) -> Mapping[str, Array]:
    registers, accelerator = subject.registers, subject.accelerator
    count = registers.get("OFM_DEPTH_M1") + 1
    records = decode_scales(streams, count, accelerator, *scale_layout(registers, accelerator))
    return {"biases": records.bias, "scales": records.scale, "shifts": records.shift}


def _bytes_differ(one: bytes, other: bytes, taken: NDArray[np.bool_]) -> str:
    """Constants that are no weights or scales: tables, and feature maps that are constant."""
    if len(one) != len(other):
        return f"{len(one)} and then {len(other)} bytes of constants"
    first, second = (np.frombuffer(data, np.uint8) for data in (one, other))
    wrong = np.flatnonzero((first != second) & ~taken[: len(first)])
    return f"{len(wrong)} bytes of constants differ, first at {wrong[0]:#x} of region 0" if len(wrong) else ""
