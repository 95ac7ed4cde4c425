"""Run a payload again and again with one thing changed, and watch what its steps do.

A *correction* changes what happens at one step: ``Fill`` puts bytes into memory before it, ``Move``
shifts the base address of one of its operands, ``Write`` changes a register, ``Store`` replaces what it
stored. The rest of the stream goes on from there; that is how a guess about a defect is put to the
test. A ``Player`` keeps the state before the first corrected step, so that trying many corrections
of one step costs only what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.artifacts.vela import VelaPayload
from harness.case.arrays import Array
from harness.ethosu import machine, output
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import Ints, wrap
from harness.ethosu.commands import SILENT
from harness.ethosu.featuremap import read, write
from harness.ethosu.memory import Memory, OutOfBounds
from harness.ethosu.npu import Npu
from harness.ethosu.pooling import NO_IFM
from harness.ethosu.records import Command, Step, StreamError
from harness.ethosu.state import CHAINED, feature_map_of
from harness.locate.divergence.stored import Stored


@dataclass(frozen=True)
class Fill:
    """Bytes to be in memory before a step."""

    region: int
    addresses: Ints
    data: Array


@dataclass(frozen=True)
class Move:
    """Another place for an operand.

    :param role: IFM, IFM2 or OFM.
    :param by: bytes that its base addresses are moved by.
    """

    role: str
    by: int


@dataclass(frozen=True)
class Store:
    """Other values to be stored.

    :param values: from what the step stored, and the operand that it could have copied, to what shall be
        there instead [height, width, depth].
    """

    values: Callable[[Ints, Ints | None], Ints]


@dataclass(frozen=True)
class Write:
    """Another value of a register, for one step.

    :param name: without ``SET_``.
    """

    name: str
    fields: Mapping[str, int]


Correction = Fill | Move | Store | Write
Watch = Callable[[Npu, Ints | None], None]


@dataclass(frozen=True)
class Program:
    """A payload ready to run.

    :param operations: the commands of each step: register writes and the operation itself.
    """

    payload: VelaPayload
    accelerator: Accelerator
    operations: tuple[tuple[Command, ...], ...]


def program_of(payload: VelaPayload, commands: Sequence[Command], accelerator: Accelerator) -> Program | None:
    """Divide a stream into steps; None if it has branches, whose steps no one can tell before it runs."""
    operations: list[tuple[Command, ...]] = []
    pending: list[Command] = []
    for command in commands:
        if command.name == "OP_STOP":
            break
        if command.name == "OP_BRANCH":
            return None
        if command.name in SILENT:
            continue
        pending.append(command)
        if not command.name.startswith("SET_"):
            operations.append(tuple(pending))
            pending = []
    return Program(payload, accelerator, tuple(operations))


@dataclass
class Player:
    """One set of inputs on which a payload runs.

    :param inputs: of the payload.
    :ivar stored: what the steps store without corrections, once somebody has looked.
    """

    program: Program
    inputs: Sequence[Array]
    stored: Mapping[int, Stored] = field(default_factory=dict)
    _kept: dict[int, Npu] = field(default_factory=dict)

    def outputs(self, corrections: Mapping[int, Correction]) -> tuple[Array, ...] | None:
        """The payload's outputs, six-dimensional; None if it stops early."""
        first = min(corrections, default=0)
        try:
            npu, plain = self.before(first).duplicate(), self.before(first).memory.duplicate()
            for index in range(first, len(self.program.operations)):
                stored = self._seen(index)
                if stored is None or index in corrections or _unlike(npu, plain, stored.step):
                    _step(npu, self.program.operations[index], corrections.get(index))
                else:
                    self._repeat(npu, index)
                if stored is not None:
                    stored.put(plain)
            return machine.outputs_of(npu, self.program.payload.outputs)
        except (StreamError, OutOfBounds):
            return None

    def watched(self, watch: Watch) -> None:
        """Run and look on.

        :param watch: called after every step, with the operand that it could have copied.
        """
        npu = self.fresh()
        for commands in self.program.operations:
            watch(npu, _step(npu, commands, None, operand=True))

    def up_to_stop(self) -> Player:
        """The same, without the step at which the stream stops early and what follows it."""
        npu, ran = self.fresh(), 0
        try:
            for commands in self.program.operations:
                _step(npu, commands, None)
                ran += 1
        except (StreamError, OutOfBounds):
            pass
        return Player(replace(self.program, operations=self.program.operations[:ran]), self.inputs)

    def before(self, index: int) -> Npu:
        """The state in which a step begins; not to be changed.

        :raises StreamError, OutOfBounds: the stream stops before.
        """
        if index not in self._kept:
            at, npu = max(((at, npu) for at, npu in self._kept.items() if at < index), default=(0, None), key=_first)
            npu = self.fresh() if npu is None else npu.duplicate()
            for step in range(at, index):
                self._repeat(npu, step)
            self._kept = {index: npu}
        return self._kept[index]

    def _repeat(self, npu: Npu, index: int) -> None:
        """What a step does without corrections, executed only if nobody has looked."""
        commands, stored = self.program.operations[index], self._seen(index)
        if stored is None:
            _step(npu, commands, None)
            return
        _set_all(npu, commands)
        stored.put(npu.memory)

    def _seen(self, index: int) -> Stored | None:
        """What a step stores without corrections, if that is known and all that it does: Ethos-U85 has chains, too."""
        return None if self.program.accelerator.u85 else self.stored.get(index)

    def fresh(self) -> Npu:
        """The state in which the stream begins."""
        return machine.prepared(self.program.payload, self.inputs, self.program.accelerator)


def chain_written(npu: Npu) -> int | None:
    """The chain buffer that the step under way writes, if it writes one (Ethos-U85)."""
    if npu.accelerator.u85 and npu.registers.get("OFM_PRECISION", "storage") == CHAINED:
        return npu.registers.get("OFM_REGION")
    return None


def shape_of(values: Ints) -> tuple[int, int, int]:
    """Height, width, depth."""
    height, width, depth = values.shape
    return height, width, depth


def _first(item: tuple[int, object]) -> int:
    return item[0]


def _step(
    npu: Npu, commands: Sequence[Command], correction: Correction | None, *, operand: bool = False
) -> Ints | None:
    """Execute one step; the operand that it could have copied, if that is asked for."""
    _set_all(npu, commands)
    operation = commands[-1]
    npu.begin(operation)
    copied = _operand(npu, operation) if operand or isinstance(correction, Store) else None
    if isinstance(correction, Fill):
        held = npu.memory.region(correction.region)
        held.data[correction.addresses], held.written[correction.addresses] = correction.data, 255
    before = npu.registers.snapshot()
    if isinstance(correction, Move):
        _move(npu, correction)
    if isinstance(correction, Write):
        _set(npu, correction.name, correction.fields)
    machine.operate(npu, operation)
    if isinstance(correction, Move | Write):
        for name, fields in before.items():
            _set(npu, name, fields)
    if isinstance(correction, Store) and npu.result is not None:
        _replace(npu, correction, copied)
    return copied


def _set_all(npu: Npu, commands: Sequence[Command]) -> None:
    for command in commands[:-1]:
        npu.registers.set(command)


def _unlike(npu: Npu, plain: Memory, step: Step) -> bool:
    """Whether a step reads something else than without corrections."""
    return any(
        not np.array_equal(
            npu.memory.region(item.region).data[item.start : item.end],
            plain.region(item.region).data[item.start : item.end],
        )
        for item in step.reads
    )


def _move(npu: Npu, move: Move) -> None:
    for tile in range(4):
        name = f"{move.role}_BASE{tile}"
        _set(npu, name, {"value": npu.registers.get(name) + move.by})


def _set(npu: Npu, name: str, fields: Mapping[str, int]) -> None:
    npu.registers.set(Command(0, (), f"SET_{name}", fields))


def _replace(npu: Npu, correction: Store, copied: Ints | None) -> None:
    assert npu.result is not None
    buffer = chain_written(npu)
    if buffer is not None:
        npu.chained[buffer] = correction.values(npu.chained[buffer], copied)
        return
    target = feature_map_of(npu.registers, "OFM", shape_of(npu.result))
    values, _ = read(npu.memory, target)
    write(npu.memory, target, correction.values(values, copied))


def _operand(npu: Npu, operation: Command) -> Ints | None:
    """The operand of an operation that could be a copy, as its result would hold it."""
    if operation.name not in ("OP_POOL", "OP_ELEMENTWISE"):
        return None
    registers = npu.registers
    role = "IFM"
    if npu.accelerator.u85 and operation.name == "OP_POOL" and operation.fields["value"] == NO_IFM:
        role = "IFM2"
    try:
        if registers.get_or(f"{role}_PRECISION", 0, "storage"):
            return None
        height, width, depth = (registers.get(f"OFM_{axis}_M1") + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH"))
        values, _ = read(npu.memory, feature_map_of(registers, role, (height, width, depth)))
        if npu.accelerator.u85:
            values = output.turned(registers, values)
        bits = 8 << registers.get("OFM_PRECISION", "precision")
        return wrap(values, bits, bool(registers.get("OFM_PRECISION", "type")))
    except (StreamError, OutOfBounds, KeyError):
        return None
