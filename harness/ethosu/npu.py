"""The state of the NPU between and during operations.

``Npu`` holds registers, memory, the chain buffers and accumulators of Ethos-U85, and what the
operation under way has read and written so far. The operations themselves are functions that
take it: ``convolution``, ``pooling``, ``elementwise``, ``resize``, ``dma``.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import Ints
from harness.ethosu.limits import MOST_WORK, Budget
from harness.ethosu.memory import Memory
from harness.ethosu.records import Access, Command, Step, StreamIssue
from harness.ethosu.state import Registers


@dataclass
class Npu:
    """Everything that an operation depends on.

    :param chained: values in chain buffers by number (U85), in the precision of their OFM.
    :param accumulators: what the last operation left in the accumulators [height, width, depth].
    :param condition: was the single element that the last kernel stored other than zero? None after
        one that stored several (U85's COND_STATUS).
    :param budget: the work that may still be done.
    :param reads: accesses of the operation under way.
    :param result: what it stored, as it lies in memory [height, width, depth].
    """

    accelerator: Accelerator
    memory: Memory
    registers: Registers = field(default_factory=Registers)
    budget: Budget = field(default_factory=lambda: Budget(MOST_WORK))
    chained: dict[int, Ints] = field(default_factory=dict)
    accumulators: Ints | None = None
    condition: bool | None = None
    issues: list[StreamIssue] = field(default_factory=list)
    reads: list[Access] = field(default_factory=list)
    writes: list[Access] = field(default_factory=list)
    result: Ints | None = None
    command: Command | None = None
    step: int = -1

    def duplicate(self) -> Npu:
        """The same state, to go on from without a trace in this one. Arrays of values are never changed in place."""
        registers = Registers()
        registers.held.update(self.registers.held)
        return replace(
            self,
            memory=self.memory.duplicate(),
            registers=registers,
            budget=copy.copy(self.budget),
            chained=dict(self.chained),
            issues=list(self.issues),
        )

    def begin(self, command: Command) -> None:
        """Make ``command`` the operation under way."""
        self.command, self.step = command, self.step + 1
        self.reads, self.writes, self.result = [], [], None

    def executed(self) -> Step:
        """The operation under way, once it is done, as a step."""
        assert self.command is not None
        return Step(self.step, self.command, self.registers.snapshot(), tuple(self.reads), tuple(self.writes))

    def report(self, kind: str, message: str, *, certain: bool = True, **seen: int | str) -> None:
        """Note an issue of the operation under way; ``seen``: as ``StreamIssue`` has it."""
        assert self.command is not None
        operation = self.command.name.removeprefix("OP_")
        told = tuple(seen.items())
        self.issues.append(StreamIssue(kind, message, operation, self.step, self.command.offset, certain, told))

    @property
    def in_bricks(self) -> bool:
        """Does the operation under way read or write a feature map in bricks (NHCWB16)?"""
        return any(self.registers.get_or(f"{role}_PRECISION", 0, "format") for role in ("IFM", "OFM"))
