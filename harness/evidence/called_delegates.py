"""The delegate calls of a program, each with the record that the lowering made of that delegate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.artifacts.program import Call, Plan, ProgramDelegate, ProgramTensor
from harness.evidence.observation import DelegateRecord


@dataclass(frozen=True)
class CalledDelegate:
    """One delegate call of the program with the record that belongs to it."""

    plan: Plan
    call: Call
    held: ProgramDelegate
    record: DelegateRecord

    @property
    def named(self) -> str:
        return f"{self.record.name} ({self.record.backend})"

    def values(self, side: str) -> tuple[int, ...]:
        count = len(self.record.inputs)
        return self.call.values[:count] if side == "input" else self.call.values[count:]

    def tensors(self, side: str) -> list[ProgramTensor | None]:
        return [self.plan.values[index].tensor for index in self.values(side)]


def matched(
    plan: Plan, records: Sequence[DelegateRecord]
) -> Iterator[tuple[Call, ProgramDelegate, DelegateRecord | None]]:
    """Each delegate call with its record: the first unused one with its payload, else the first left over."""
    calls = [call for call in plan.calls if call.kind == "delegate"]
    left = list(records)
    chosen: list[DelegateRecord | None] = []
    for call in calls:
        payload = plan.delegates[call.delegate].payload
        record = next((item for item in left if item.payload == payload), None)
        chosen.append(record)
        if record is not None:
            left = [item for item in left if item is not record]
    for call, record in zip(calls, chosen, strict=True):
        if record is None and left:
            record = left.pop(0)
        yield call, plan.delegates[call.delegate], record


def recorded(plan: Plan, pairs: Sequence[tuple[Call, ProgramDelegate, DelegateRecord | None]]) -> list[CalledDelegate]:
    """The calls of delegates that the lowering told of."""
    return [CalledDelegate(plan, call, held, record) for call, held, record in pairs if record is not None]
