"""``delegation``: an operator that upstream's own tables support stayed on the CPU.

No defect by itself: a listed operator may be refused for its rank, its dtype or its place in the
graph, and a program that runs it on the CPU is right. It is what silently costs a model its
speed, so it is information, which counts only if asked for (``--strict``).

Not told: operators that the recipe leaves float and their direct neighbours; partitions that
would have computed nothing; operators that the tables do not name, or on a release without them.
"""

from __future__ import annotations

from harness.evidence.observation import Mismatch, Observation, Oracle
from harness.pipeline.probes.results import FallenBack

NOTHING_TO_COMPUTE = "empty partition"


def judge(observation: Observation) -> list[Mismatch]:
    """One mismatch an operator (however many nodes of it there are)."""
    fallen: tuple[FallenBack, ...] = observation.probes.get("delegation", ())
    told: dict[str, list[FallenBack]] = {}
    for item in fallen:
        if item.listed == "yes" and not item.float_by_recipe and NOTHING_TO_COMPUTE not in item.reason:
            told.setdefault(item.operator, []).append(item)
    return [_mismatch(operator, items) for operator, items in told.items()]


def _mismatch(operator: str, items: list[FallenBack]) -> Mismatch:
    nodes = ", ".join(item.node for item in items[:4]) + (f" and {len(items) - 4} more" if len(items) > 4 else "")
    reasons = list(dict.fromkeys(item.reason for item in items if item.reason))
    why = "; ".join(reasons[:2]) or "the partitioner reported no reason"
    return Mismatch(
        oracle="delegation",
        kind="supported operator on the CPU",
        stage="lower",
        message=f"{operator} ({nodes}) runs on the CPU although upstream lists it for this target: {why}",
        measured={"nodes": len(items)},
        signature=operator,
        information=True,
    )


ORACLE = Oracle("delegation", judge, probed=True, rank=11)
