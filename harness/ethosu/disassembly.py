"""A command stream as a listing that people can read beside the graph that it was compiled from.

First what the payload says: the accelerator, the sizes of the regions, inputs and outputs. Then
each command with its byte offset in ``cmd_data``, its words, its name and its decoded fields. A
register written is a register held: after every operation, lines that begin with ``;`` say what
all registers together make it do (``operation_text``). Operations are numbered as *steps*, from
0, waits and DMA included, as the model and its issues number them.

Nothing is executed. ``listing`` and ``as_data`` give the same facts, as text and for JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.artifacts.vela import VelaIO, VelaPayload
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.commands import SILENT, DriverActions, decode_commands, driver_actions, field_text, reserved_bits
from harness.ethosu.operation_text import Constants, Subject, operation_lines, place
from harness.ethosu.records import FAST_SCRATCH, REGION_NAMES, SCRATCH, WEIGHTS, Command, Step, StreamError
from harness.ethosu.state import Registers

CONTEXT = 12
"""Commands before and after the one in question."""
_NAME_WIDTH = 24


def listing(
    payload: VelaPayload, accelerator: Accelerator, *, around: int | None = None, context: int = CONTEXT
) -> Iterator[str]:
    """The lines of a listing.

    :param around: only the neighbourhood of the command at (or over) this byte offset in
        ``cmd_data``, which is marked with ``>``; without the header.
    :param context: how many commands before and after it.
    :raises StreamError: the stream cannot be decoded, or has no command at the offset.
    """
    actions = driver_actions(payload.commands)
    commands = decode_commands(payload.commands, accelerator)
    wanted, marked = range(len(commands)), -1
    if around is None:
        yield from _header(payload, actions, commands)
    else:
        marked = _at(commands, actions, around)
        wanted = range(max(marked - context, 0), min(marked + context + 1, len(commands)))
    for index, (command, subject) in enumerate(subjects(payload, commands, accelerator)):
        if index >= wanted.stop:
            return
        if index not in wanted:
            continue
        yield ("> " if index == marked else "  ") + _command_line(command, accelerator)
        if subject is not None:
            yield from ("  ; " + line for line in operation_lines(subject))


def as_data(payload: VelaPayload, accelerator: Accelerator) -> dict[str, Any]:
    """The whole listing for JSON: header, commands and operations.

    :raises StreamError: the stream cannot be decoded.
    """
    actions = driver_actions(payload.commands)
    commands = decode_commands(payload.commands, accelerator)
    operations = [
        {
            "step": subject.step.index,
            "offset": command.offset,
            "kind": subject.step.kind,
            "text": [*operation_lines(subject)],
        }
        for command, subject in subjects(payload, commands, accelerator)
        if subject is not None
    ]
    return {
        "accelerator": accelerator.name,
        "architecture": list(actions.architecture),
        "regions": {REGION_NAMES[region]: size for region, size in _sizes(payload).items()},
        "inputs": [_io_data(item) for item in payload.inputs],
        "outputs": [_io_data(item) for item in payload.outputs],
        "commands": [
            {
                "offset": command.offset,
                "words": list(command.words),
                "name": command.name,
                "fields": dict(command.fields),
                "text": _fields_text(command, accelerator),
            }
            for command in commands
        ],
        "operations": operations,
    }


def subjects(
    payload: VelaPayload, commands: Sequence[Command], accelerator: Accelerator
) -> Iterator[tuple[Command, Subject | None]]:
    """Every command, and with an operation the registers as they are when it is issued."""
    registers, constants, index = Registers(), Constants(payload.weights), 0
    for command in commands:
        if command.name.startswith("SET_"):
            registers.set(command)
            yield command, None
        elif command.name in ("OP_STOP", *SILENT):
            yield command, None
        else:
            if command.name == "OP_DMA_START":
                constants.note(registers)
            yield command, Subject(Step(index, command, registers.snapshot()), registers, accelerator, constants)
            index += 1


def _at(commands: Sequence[Command], actions: DriverActions, offset: int) -> int:
    """The command whose words hold a byte of ``cmd_data``."""
    if not actions.start <= offset < actions.start + actions.length:
        last = actions.start + actions.length
        raise StreamError(f"there is no command at {offset:#x}; commands are at {actions.start:#x} to {last:#x}")
    return max(index for index, command in enumerate(commands) if command.offset <= offset)


def _header(payload: VelaPayload, actions: DriverActions, commands: Sequence[Command]) -> Iterator[str]:
    operations = sum(command.name.startswith("OP_") for command in commands)
    major, minor, patch = actions.architecture
    yield f"{actions}; architecture {major}.{minor}.{patch}"
    yield f"{len(commands)} commands ({operations} operations) in {actions.length} bytes from {actions.start:#x}"
    for region, size in _sizes(payload).items():
        yield f"region {region}: {REGION_NAMES[region]}, {size} bytes"
    for side, items in (("input", payload.inputs), ("output", payload.outputs)):
        for index, item in enumerate(items):
            shape = "x".join(map(str, item.shape))
            where = place(item.region, item.offset, item.end)
            yield f"{side} {index}: {shape} with {8 * item.element_size} bits each, {item.bytes} bytes at {where}"
    yield ""


def _sizes(payload: VelaPayload) -> dict[int, int]:
    sizes = {WEIGHTS: len(payload.weights), SCRATCH: payload.scratch_size}
    return {**sizes, FAST_SCRATCH: payload.fast_scratch_size} if payload.fast_scratch_size else sizes


def _io_data(item: VelaIO) -> dict[str, Any]:
    return {
        "shape": list(item.shape),
        "element_size": item.element_size,
        "offset": item.offset,
        "bytes": item.bytes,
        "region": item.region,
    }


def _command_line(command: Command, accelerator: Accelerator) -> str:
    words = " ".join(f"{word:08x}" for word in command.words)
    return (
        f"{command.offset:06x}  {words:17}  {command.name:{_NAME_WIDTH}} {_fields_text(command, accelerator)}".rstrip()
    )


def _fields_text(command: Command, accelerator: Accelerator) -> str:
    shown = [(name, field_text(command.name, name, value, accelerator)) for name, value in command.fields.items()]
    text = shown[0][1] if len(shown) == 1 else " ".join(f"{name}={value}" for name, value in shown)
    reserved = reserved_bits(command, accelerator)
    return f"{text} (reserved bits {reserved:#x})".lstrip() if reserved else text
