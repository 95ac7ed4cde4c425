"""Single-bit flips of a subject: where they may be, what they are in, and how many of each kind.

The *place* of a flip is a register or operation for commands, and for constants what kernels read
the byte as: weights, scale records, a table, or data. Bytes that nothing reads are ``unread``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from harness.artifacts.vela import VelaPayload
from harness.ethosu.commands import decode_commands, driver_actions
from tests.exactness.program import random_state
from tests.streams.recording import Trace
from tests.streams.subjects import Subject

COMMANDS, WEIGHTS, SCALES, TABLE, DATA, UNREAD = "commands", "weights", "scale records", "table", "constants", "unread"
DRIVER_ACTIONS = "driver actions"
_ROLES = {"WEIGHT": WEIGHTS, "SCALE": SCALES, "LUT": TABLE}
_SHARES = {COMMANDS: 20, WEIGHTS: 14, SCALES: 10, TABLE: 4, DATA: 1, UNREAD: 1}
"""Of fifty; what a subject does not have goes to its commands."""


@dataclass(frozen=True)
class Flip:
    """One bit.

    :param kind: ``commands`` or one of the kinds of constants.
    :param place: the register, or the kind.
    :param bit: counted from the start of ``cmd_data`` or of the weights.
    """

    kind: str
    place: str
    bit: int

    def of(self, payload: VelaPayload) -> VelaPayload:
        """The payload with this bit flipped."""
        if self.kind == COMMANDS:
            return replace(payload, commands=_flipped(payload.commands, self.bit))
        return replace(payload, weights=_flipped(payload.weights, self.bit))


def _flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit >> 3] ^= 1 << (bit & 7)
    return bytes(changed)


def chosen(subject: Subject, good: Trace, count: int, seed: int) -> Iterator[Flip]:
    """``count`` different flips, in shares by kind."""
    rng = random_state("flips", seed, subject.name, subject.accelerator.name)
    places = _constants(subject.payload, good)
    numbers = {kind: share * count // sum(_SHARES.values()) for kind, share in _SHARES.items() if places.get(kind)}
    numbers[COMMANDS] = count - sum(numbers.values())
    names = _registers(subject)
    for kind, number in numbers.items():
        offsets = np.arange(len(subject.payload.commands)) if kind == COMMANDS else np.array(places[kind])
        for bit in rng.choice(8 * len(offsets), min(number, 8 * len(offsets)), replace=False):
            offset = int(offsets[bit >> 3])
            yield Flip(kind, names[offset] if kind == COMMANDS else kind, 8 * offset + int(bit & 7))


def _constants(payload: VelaPayload, good: Trace) -> dict[str, list[int]]:
    """Offsets by kind."""
    found: dict[str, list[int]] = {}
    for offset in range(len(payload.weights)):
        roles = good.roles.get(offset, set())
        kinds = [_ROLES[role] for role in _ROLES if role in roles]
        found.setdefault(kinds[0] if kinds else DATA if roles else UNREAD, []).append(offset)
    return found


def _registers(subject: Subject) -> list[str]:
    """The command that each byte belongs to."""
    names = [DRIVER_ACTIONS] * driver_actions(subject.payload.commands).start
    for command in decode_commands(subject.payload.commands, subject.accelerator):
        names += [command.name] * (4 * len(command.words))
    return names
