"""What the parts of the Ethos-U model hand to each other: commands, steps, accesses, issues.

Words: a *command* is one or two words of the command stream: either a register write
(``SET_…``) or an operation (``OP_…``). A *step* is an operation with everything that the
registers said when it was issued, and the memory that it reads and writes. A *region* is the
memory that an address counts in: 0 weights and constants, 1 scratch, 2 fast scratch, and LUT,
the table memory inside the NPU (SHRAM on Ethos-U55 and U65, a RAM of 2 KiB on U85).

An *issue* is something that the stream does and must not do. One that is not ``certain`` depends
on a property of the hardware that no public text settles; it is information, not a finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WEIGHTS, SCRATCH, FAST_SCRATCH, LUT = 0, 1, 2, -1
REGION_NAMES = {WEIGHTS: "weights", SCRATCH: "scratch", FAST_SCRATCH: "fast scratch", LUT: "LUT memory"}


class StreamError(ValueError):
    """The command stream cannot be decoded or executed; one line that says where and why.

    :param offset: byte offset in ``cmd_data`` of the command that it is about, if there is one.
    """

    def __init__(self, problem: str, offset: int | None = None) -> None:
        self.problem, self.offset = problem, offset
        super().__init__(problem if offset is None else f"command at {offset:#06x}: {problem}")


class Unimplemented(StreamError):
    """An opcode, mode or combination of registers that the model does not implement: never a guess."""


@dataclass(frozen=True, slots=True)
class Command:
    """One decoded command.

    :param offset: byte offset of its first word in ``cmd_data``.
    :param words: the raw words, one or two.
    :param name: ``SET_IFM_PAD_TOP``, ``OP_CONV``: the interface's name without ``NPU_``.
    :param fields: decoded fields by name; sign-extended where the interface's field is signed.
        A command with one field calls it ``value``. An address, stride or length that is split
        over two words is one 40-bit field.
    """

    offset: int
    words: tuple[int, ...]
    name: str
    fields: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes that an operation reads or writes, from ``start`` up to but without ``end``.

    :param role: ``IFM``, ``IFM2``, ``OFM``, ``WEIGHT``, ``SCALE``, ``SOURCE``, ``DESTINATION``,
        ``INDEX`` or ``LUT``.
    :param region: a number from 0 to 7, or ``LUT``.
    """

    role: str
    region: int
    start: int
    end: int

    def overlaps(self, other: Access) -> bool:
        return self.region == other.region and self.start < other.end and other.start < self.end

    def __str__(self) -> str:
        name = REGION_NAMES.get(self.region, f"region {self.region}")
        return f"{self.role} {name}[{self.start:#x}:{self.end:#x}]"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of the stream as it was executed.

    :param index: counts operations from 0, waits and DMA included.
    :param command: the ``OP_…`` command.
    :param registers: every register at this point, name without ``SET_`` -> fields; one never
        written is absent.
    :param reads: sorted, disjoint where they are of one role.
    :param writes: the same.
    """

    index: int
    command: Command
    registers: Mapping[str, Mapping[str, int]]
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()

    @property
    def kind(self) -> str:
        """``CONV``, ``DEPTHWISE``, ``POOL``, ``ELEMENTWISE``, ``RESIZE``, ``DMA_START``, ``DMA_WAIT``, …"""
        return self.command.name.removeprefix("OP_")

    def value(self, register: str, field: str = "value") -> int:
        """What a register held.

        :raises KeyError: no command had written it.
        """
        return self.registers[register][field]


@dataclass(frozen=True)
class StreamIssue:
    """Something wrong with the stream, found while it ran or by reading it.

    :param kind: a short stable word: ``out-of-bounds``, ``unwritten-read``, ``unset-register``,
        ``stream-length``, ``weight-padding``, ``overlap``, ``hazard``, ``duplicate``,
        ``unwritten-output``.
    :param message: one line: what was seen and what was expected, in bytes or registers.
    :param operation: the step's kind, for the bucket.
    :param step: the step's index; None where no step is to blame.
    :param offset: byte offset in ``cmd_data``.
    :param certain: False for what the hardware may well allow: information.
    :param seen: numbers and words behind the message, by name: of a hazard ``blockdep``, ``safe`` (the largest BLOCKDEP
        that is), ``after`` (the kind of the other operation), ``other`` (its last step), ``missing`` (``KERNEL_WAIT``),
        ``conflict`` and ``theirs`` (what the other operation reads or writes there, ``INDEX``); of an output
        ``unwritten``; of what leaves a region ``bricks`` (1 if the operation reads or writes a feature map in NHCWB16).
    """

    kind: str
    message: str
    operation: str = ""
    step: int | None = None
    offset: int | None = None
    certain: bool = True
    seen: tuple[tuple[str, int | str], ...] = ()
