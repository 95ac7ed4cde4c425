"""Damaged and hostile payloads: fifteen kinds of mutation of a good one.

A *mutant* is bytes in one of the two forms that armdiff reads (an ExecuTorch delegate, a raw
``.npz``), made from a subject by a kind and a random state alone. Kinds that work on bytes do not
know what they hit; kinds that work on commands keep the stream decodable most of the time, so that
what they break is found by execution and not by the parser.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from harness.artifacts.vela import VelaIO, VelaPayload
from harness.ethosu.commands import command_table, decode_commands, driver_actions, encode_command
from harness.ethosu.records import Command
from tests.exactness.program import random_state
from tests.streams.subjects import Random, Subject, delegate_bytes

_EXTREMES = (0, 1, -1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 2**31 - 1, -(2**31))
_INT32 = 1 << 32
_OPERATIONS = ("OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE", "OP_RESIZE", "OP_DMA_START")


@dataclass(frozen=True)
class Mutant:
    """A mutated payload.

    :param form: ``delegate`` or ``npz``.
    """

    kind: str
    subject: Subject
    form: str
    data: bytes


def mutant(seed: int, number: int, subjects: tuple[Subject, ...]) -> Mutant:
    """The mutant of a number; kinds take turns."""
    rng = random_state("mutant", seed, number)
    kind = tuple(KINDS)[number % len(KINDS)]
    subject = subjects[int(rng.randint(len(subjects)))]
    if kind == "npz: bytes":
        return Mutant(kind, subject, "npz", _damaged(rng, npz_bytes(subject)))
    return Mutant(kind, subject, "delegate", KINDS[kind](rng, subject.payload, subjects))


def npz_bytes(subject: Subject) -> bytes:
    """The file that Vela writes."""
    file = io.BytesIO()
    np.savez(file, **subject.arrays)
    return file.getvalue()


# ---- bytes ----------------------------------------------------------------------------------------------------------


def _damaged(rng: Random, data: bytes) -> bytes:
    """Cut off, bits flipped, or a run overwritten."""
    return (_truncated, _flipped, _overwritten)[int(rng.randint(3))](rng, data)


def _truncated(rng: Random, data: bytes) -> bytes:
    return data[: int(rng.randint(len(data)))]


def _flipped(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 8, 64]))):
        changed[int(rng.randint(len(changed)))] ^= 1 << int(rng.randint(8))
    return bytes(changed)


def _overwritten(rng: Random, data: bytes) -> bytes:
    start, length = int(rng.randint(len(data))), int(rng.choice([1, 2, 4, 8, 16, 64, 300]))
    fill = [rng.bytes(length), bytes(length), b"\xff" * length][int(rng.randint(3))]
    return data[:start] + fill[: len(data) - start] + data[start + length :]


def _moved(rng: Random, data: bytes) -> bytes:
    """A run of bytes taken out, put in twice, or put in elsewhere."""
    start, length = int(rng.randint(len(data))), int(rng.choice([1, 4, 16, 36, 128]))
    run, rest = data[start : start + length], data[:start] + data[start + length :]
    place = int(rng.randint(len(rest) + 1))
    return (rest, data[:start] + run + data[start:], rest[:place] + run + rest[place:])[int(rng.randint(3))]


# ---- blocks ---------------------------------------------------------------------------------------------------------


def _blocks(data: bytes) -> list[bytes]:
    """The blocks of a delegate, headers and padding included."""
    found = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 16)
        end = at + 32 + length + -length % 16
        found.append(data[at:end])
        at = end
    return found


def _swapped_blocks(rng: Random, data: bytes) -> bytes:
    """Two blocks change places, contents or names; or one comes twice, or not at all."""
    blocks = _blocks(data)
    first, second = sorted(int(place) for place in rng.choice(len(blocks), 2, replace=False))
    one, other = blocks[first], blocks[second]
    choice = int(rng.randint(5))
    if choice == 0:
        blocks[first], blocks[second] = other, one
    elif choice == 1:
        blocks[first], blocks[second] = one[:16] + other[16:], other[:16] + one[16:]
    elif choice == 2:
        blocks[first] = other
    elif choice == 3:
        del blocks[first]
    else:
        blocks.insert(second, one)
    return b"".join(blocks)


def _block_lengths(rng: Random, data: bytes) -> bytes:
    """A length or flag in the header of a block."""
    blocks = _blocks(data)
    place = int(rng.randint(len(blocks)))
    header = bytearray(blocks[place][:32])
    if rng.randint(8) == 0:
        header[20 + int(rng.randint(12))] = int(rng.randint(256))
    else:
        (length,) = struct.unpack_from("<I", header, 16)
        value = length + int(rng.randint(-40, 41)) if rng.randint(2) else int(rng.choice(_EXTREMES))
        struct.pack_into("<I", header, 16, value % _INT32)
    blocks[place] = bytes(header) + blocks[place][32:]
    return b"".join(blocks)


# ---- commands -------------------------------------------------------------------------------------------------------


def _with_words(payload: VelaPayload, words: list[int]) -> bytes:
    """Another command stream behind the same driver actions, its length put right."""
    start = driver_actions(payload.commands).start
    header = bytearray(payload.commands[:start])
    count = len(words)
    struct.pack_into("<I", header, start - 4, 2 | count >> 16 << 8 | (count & 0xFFFF) << 16)
    stream = bytes(header) + np.array(words, "<u4").tobytes()
    return delegate_bytes(replace(payload, commands=stream))


def _commands(payload: VelaPayload, subjects: tuple[Subject, ...]) -> tuple[Subject, tuple[Command, ...]]:
    subject = next(item for item in subjects if item.payload is payload)
    return subject, decode_commands(payload.commands, subject.accelerator)


def _shuffled_words(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Words of the stream exchanged, whatever they belong to."""
    start = driver_actions(payload.commands).start
    words = np.frombuffer(payload.commands, "<u4", offset=start).tolist()
    for _ in range(int(rng.choice([1, 1, 2, 10]))):
        first, second = (int(place) for place in rng.randint(len(words), size=2))
        words[first], words[second] = words[second], words[first]
    return _with_words(payload, words)


def _shuffled_commands(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Commands exchanged, left out, or repeated."""
    _, commands = _commands(payload, subjects)
    order = list(commands)
    for _ in range(int(rng.choice([1, 1, 2, 10]))):
        first, second = (int(place) for place in rng.randint(len(order), size=2))
        choice = int(rng.randint(3))
        if choice == 0:
            order[first], order[second] = order[second], order[first]
        elif choice == 1 and len(order) > 1:
            del order[first]
        else:
            order[first:first] = order[second : second + int(rng.randint(1, 40))]
    return _with_words(payload, [word for command in order for word in command.words])


def _huge_fields(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Fields of commands at the ends of their range, or anywhere in it: shapes, strides, addresses, shifts, modes."""
    subject, commands = _commands(payload, subjects)
    specs = {spec.name: spec for spec in command_table(subject.accelerator).values()}
    words = [list(command.words) for command in commands]
    places = [place for place, command in enumerate(commands) if command.fields]
    for place in rng.choice(places, int(rng.choice([1, 1, 1, 2, 4])), replace=False):
        command = commands[int(place)]
        field = specs[command.name].fields[int(rng.randint(len(specs[command.name].fields)))]
        low = -(1 << field.bits - 1) if field.signed else 0
        high = low + (1 << field.bits) - 1
        near = command.fields[field.name] + int(rng.choice([-16, -1, 1, 16]))
        anywhere = low + int.from_bytes(rng.bytes(8), "little") % (high - low + 1)
        value = (low, high, high // 2, near, anywhere)[int(rng.randint(5))]
        fields = {**command.fields, field.name: max(low, min(high, value))}
        words[int(place)] = list(encode_command(command.name, fields, subject.accelerator))
    return _with_words(payload, [word for item in words for word in item])


def _endless(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Enormous shapes, kernels, padding and repetitions whose strides are zero, so that they stay within bounds."""
    subject, commands = _commands(payload, subjects)
    specs = {spec.name: spec for spec in command_table(subject.accelerator).values()}
    before = [place for place, command in enumerate(commands) if command.name in _OPERATIONS]
    place = int(rng.choice(before))
    written: list[int] = []

    def write(name: str, value: int) -> None:
        field = specs[name].fields[0]
        low = -(1 << field.bits - 1) if field.signed else 0
        fields = {"value": max(low, min(low + (1 << field.bits) - 1, value))}
        written.extend(encode_command(name, fields, subject.accelerator))

    for role in ("IFM", "IFM2", "OFM"):
        for axis in "YXC":
            write(f"SET_{role}_STRIDE_{axis}", 0 if rng.randint(8) else 1)
        for name in ("HEIGHT0_M1", "HEIGHT1_M1", "WIDTH0_M1"):
            write(f"SET_{role}_{name}", 0xFFFF if rng.randint(8) else 0)
    for name in (
        "OFM_HEIGHT_M1",
        "OFM_WIDTH_M1",
        "OFM_DEPTH_M1",
        "IFM_DEPTH_M1",
        "KERNEL_HEIGHT_M1",
        "KERNEL_WIDTH_M1",
    ):
        if rng.randint(2):
            write(f"SET_{name}", (1 << int(rng.randint(17))) - 1)
    for name in ("TOP", "LEFT", "BOTTOM", "RIGHT"):
        if rng.randint(4) == 0:
            write(f"SET_IFM_PAD_{name}", 0xFFFF)
    for name in ("SET_DMA0_SIZE0", "SET_DMA0_SIZE1", "SET_DMA0_LEN", "SET_WEIGHT_LENGTH", "SET_SCALE_LENGTH"):
        if rng.randint(3) == 0:
            write(name, (1 << int(rng.randint(33))) - 1)
    words = [list(command.words) for command in commands]
    return _with_words(payload, [word for item in (*words[:place], written, *words[place:]) for word in item])


def _modes(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Another operation or mode, with registers that were meant for the one that was there."""
    subject, commands = _commands(payload, subjects)
    specs = command_table(subject.accelerator).values()
    operations = [spec for spec in specs if spec.name.startswith("OP_")]
    words = [list(command.words) for command in commands]
    places = [place for place, command in enumerate(commands) if command.name in _OPERATIONS]
    for place in rng.choice(places, min(len(places), int(rng.choice([1, 1, 3]))), replace=False):
        spec = operations[int(rng.randint(len(operations)))]
        fields = {field.name: int(rng.randint(min(1 << field.bits, 48))) for field in spec.fields}
        words[int(place)] = list(encode_command(spec.name, fields, subject.accelerator))
    return _with_words(payload, [word for item in words for word in item])


# ---- tables and weights ---------------------------------------------------------------------------------------------


def _tables(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Shape, element size, offset or region of an input or output, or the size of the scratch memory."""
    sides = {"inputs": list(payload.inputs), "outputs": list(payload.outputs)}
    side = sides["inputs" if rng.randint(2) else "outputs"]
    if rng.randint(5) == 0:
        size = int(rng.choice([0, 1, payload.scratch_size // 2, payload.scratch_size - 1, 2**29, 2**29 + 1, 2**32 - 1]))
        return delegate_bytes(replace(payload, scratch_size=size))
    if rng.randint(6) == 0:
        side.append(side[0]) if rng.randint(2) else side.pop()
        return delegate_bytes(replace(payload, inputs=tuple(sides["inputs"]), outputs=tuple(sides["outputs"])))
    place = int(rng.randint(len(side)))
    slot, value = side[place], int(rng.choice(_EXTREMES[:-1])) if rng.randint(2) else int(rng.randint(-64, 64))
    axis = int(rng.randint(6))
    shape = tuple(value if index == axis else size for index, size in enumerate(slot.shape))
    side[place] = (
        replace(slot, shape=shape),
        VelaIO(slot.shape, value, slot.offset, slot.region),
        replace(slot, offset=value),
        replace(slot, region=value),
    )[int(rng.randint(4))]
    return delegate_bytes(replace(payload, inputs=tuple(sides["inputs"]), outputs=tuple(sides["outputs"])))


def _weights(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """Weights, scale records and tables: damaged, cut off, or another program's."""
    if rng.randint(6) == 0:
        other = subjects[int(rng.randint(len(subjects)))].payload
        return delegate_bytes(replace(payload, weights=other.weights))
    data = payload.weights or bytes(16)
    return delegate_bytes(replace(payload, weights=_damaged(rng, data)))


def _crossed(rng: Random, payload: VelaPayload, subjects: tuple[Subject, ...]) -> bytes:
    """The commands of another program."""
    other = subjects[int(rng.randint(len(subjects)))].payload
    return delegate_bytes(replace(payload, commands=other.commands))


Kind = Callable[[Random, VelaPayload, tuple[Subject, ...]], bytes]


def _of_bytes(change: Callable[[Random, bytes], bytes]) -> Kind:
    return lambda rng, payload, subjects: change(rng, delegate_bytes(payload))


KINDS: dict[str, Kind] = {
    "truncated": _of_bytes(_truncated),
    "bits flipped": _of_bytes(_flipped),
    "bytes overwritten": _of_bytes(_overwritten),
    "bytes moved": _of_bytes(_moved),
    "blocks swapped": _of_bytes(_swapped_blocks),
    "block lengths": _of_bytes(_block_lengths),
    "words swapped": _shuffled_words,
    "commands swapped": _shuffled_commands,
    "fields at extremes": _huge_fields,
    "enormous shapes": _endless,
    "other operations": _modes,
    "inputs and outputs": _tables,
    "weights damaged": _weights,
    "another's commands": _crossed,
    "npz: bytes": _of_bytes(_damaged),
}
