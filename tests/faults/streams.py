"""Faults in the command stream: what Vela emitted, changed before the delegate gets it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from harness.artifacts.vela import ALIGNMENT, FIRST, LAST, VelaIO, VelaPayload, decode_vela
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.commands import decode_commands, driver_actions, encode_command
from tests.faults.cases import conv_sigmoid_case
from tests.faults.fault import Fault, patched

Commands = list[tuple[str, dict[str, int]]]


def encode_payload(payload: VelaPayload) -> bytes:
    """A payload's bytes: the inverse of ``decode_vela``."""
    blocks = {
        FIRST: b"",
        "cmd_data": payload.commands,
        "weight_data": payload.weights,
        "scratch_size": payload.scratch_size.to_bytes(4, "little"),
        "inputs": _table(payload.inputs),
        "outputs": _table(payload.outputs),
        LAST: b"",
    }
    return b"".join(
        name.encode().ljust(16, b"\0") + len(data).to_bytes(16, "little") + data + bytes(-len(data) % ALIGNMENT)
        for name, data in blocks.items()
    )


def _table(rows: tuple[VelaIO, ...]) -> bytes:
    numbers = [len(rows)]
    for row in rows:
        numbers += [*row.shape, row.element_size, row.offset, row.region]
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


def with_commands(payload: VelaPayload, change: Callable[[Commands, Accelerator], Commands]) -> VelaPayload:
    """The payload with another stream; words before the stream but its length stay."""
    actions = driver_actions(payload.commands)
    accelerator = actions.accelerator
    commands = [(item.name, dict(item.fields)) for item in decode_commands(payload.commands, accelerator)]
    words = [
        word for name, fields in change(commands, accelerator) for word in encode_command(name, fields, accelerator)
    ]
    head = payload.commands[: actions.start - 4] + (len(words) << 16 | 2).to_bytes(4, "little")
    return replace(payload, commands=head + b"".join(word.to_bytes(4, "little") for word in words))


def compiled(
    change: Callable[[VelaPayload], VelaPayload], tosa: Callable[[bytes], bytes] = bytes
) -> Callable[[], AbstractContextManager[None]]:
    """Vela's payload, changed.

    :param tosa: changes the TOSA flatbuffer that Vela gets; what armdiff compares with stays as it was.
    """

    def planted() -> AbstractContextManager[None]:
        from executorch.backends.arm.ethosu import backend

        original = backend.vela_compile

        def wrong(flatbuffer: bytes, *args: Any, **words: Any) -> Any:
            result = original(tosa(flatbuffer), *args, **words)
            payload = change(decode_vela(result.processed_bytes))
            return replace(result, processed_bytes=encode_payload(payload))

        return patched(backend, "vela_compile", wrong)

    return planted


def emitted(change: Callable[[Commands, Accelerator], Commands]) -> Callable[[], AbstractContextManager[None]]:
    """Vela's stream, changed."""
    return compiled(lambda payload: with_commands(payload, change))


def altered(name: str, field: str, by: int) -> Callable[[Commands, Accelerator], Commands]:
    """Every write of a register writes another value; a stream without it stays as it is."""

    def change(commands: Commands, accelerator: Accelerator) -> Commands:
        return [
            (command, {**fields, field: fields[field] + by} if command == name else fields)
            for command, fields in commands
        ]

    return change


def without(*names: str) -> Callable[[Commands, Accelerator], Commands]:
    """Some commands are lost; a stream without them stays as it is."""
    return lambda commands, accelerator: [item for item in commands if item[0] not in names]


def _twice(commands: Commands, accelerator: Accelerator) -> Commands:
    """The convolution is emitted once more."""
    return [item for item in commands for _ in range(2 if item[0] == "OP_CONV" else 1)]


def _onto_its_input(commands: Commands, accelerator: Accelerator) -> Commands:
    """The convolution writes over the rows that it still has to read."""
    base = next(fields["value"] for name, fields in commands if name == "SET_IFM_BASE0")
    return [(name, {"value": base} if name == "SET_OFM_BASE0" else fields) for name, fields in commands]


def _fault(name: str, stands_for: str, oracle: str, kind: str, change: Callable[..., Commands]) -> Fault:
    return Fault(name, stands_for, oracle, kind, "Vela", conv_sigmoid_case(), emitted(change))


FAULTS = (
    _fault(
        "wait-for-table-lost",
        "a table is read while DMA still writes it",
        "stream",
        "hazard",
        without("OP_DMA_WAIT"),
    ),
    _fault(
        "scale-never-set",
        "an operation runs with what another left in a register",
        "stream",
        "unset-register",
        without("SET_OFM_PRECISION"),
    ),
    _fault(
        "output-address-outside",
        "a buffer is allocated beyond the scratch memory",
        "stream",
        "out-of-bounds",
        altered("SET_OFM_BASE0", "value", 1 << 20),
    ),
    _fault(
        "input-address-off",
        "a slice begins in the wrong place",
        "stream",
        "unwritten-read",
        altered("SET_IFM_BASE0", "value", 16),
    ),
    _fault(
        "scales-of-another-length",
        "the length of a scale stream is not that of its channels",
        "stream",
        "stream-length",
        altered("SET_SCALE_LENGTH", "value", 16),
    ),
    _fault("emitted-twice", "U85's operations that do their work twice", "stream", "duplicate", _twice),
    _fault(
        "output-over-input",
        "a buffer is reused while it is still read",
        "stream",
        "overlap",
        _onto_its_input,
    ),
    _fault(
        "clip-not-applied",
        "a clamp is lost by the compiler",
        "numeric",
        "differs from the TOSA reference",
        altered("SET_ACTIVATION_MIN", "value", 60),
    ),
)
