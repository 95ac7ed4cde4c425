"""Plants in the streams of TOSA programs: how often is a new bug taken for an entry's by its smallest program?

``python -m tests.faults.smallest_plants [family…] [--programs N] [--seed S] [--plant NAME]`` prints for each plant what
its findings were called, and each that was called known; exit status 1 if one was.

The programs are drawn; each is clean without the plant, and somewhere in it stands what a condition with ``whole``
names. So a plant is a bug where a known one could be and is not. Findings are reduced as ``armdiff vela`` does it.
Where the smallest program shows the same without the plant, the reduction came from the plant to a real bug: that is a
false proof as well, and no fault of the condition.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from rich.console import Console

from generators.programs import draw_programs
from harness.artifacts.vela import VelaPayload
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.tosa.causes import FAMILIES, Cause, Reducer
from harness.tosa.compiling import compile_flatbuffer
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.judging import judge
from harness.tosa.patterns import anywhere, whole_place
from harness.tosa.program import Program, chain
from harness.tosa.versions import tally_of
from harness.triage.corpus import bugs_of, corpus_folders
from harness.triage.findings import Finding
from harness.triage.given import known_entries
from harness.triage.known import KnownBug, classified, shown_kind
from tests.faults.payload_plants import ELEMENTWISE, POOL, Registers, Stream, Where, where_it_holds
from tests.faults.streams import with_commands

NEW, AT_ONCE, BY_PATTERN, BY_FINGERPRINT, WANDERED, NOTHING = (
    "new",
    "known at once",
    "known by a whole condition",
    "known by a fingerprint",
    "reduced to a real bug",
    "not seen again",
)
SECONDS = 25.0


@dataclass(frozen=True)
class Plant:
    """At the operations of a kind a register holds something else.

    :param stands_for: the bug in a few words.
    """

    name: str
    stands_for: str
    register: str
    field: str
    change: Callable[[int], int]
    where: Where

    @property
    def stream(self) -> Stream:
        """Puts the plant into a stream."""
        return where_it_holds(self.where, f"SET_{self.register}", self.field, self.change)

    def compile(self, tosa: bytes, accelerator: str) -> VelaPayload:
        """Vela's payload with the plant."""
        return with_commands(compile_flatbuffer(tosa, accelerator), self.stream)


def _kind(*operations: str) -> Where:
    return lambda operation, held, before: operation in operations


def _several(operation: str, held: Registers, before: str) -> bool:
    """A result of several rows and channels that are no multiple of 16."""
    depth = held.get("SET_OFM_DEPTH_M1", {}).get("value", 0) + 1
    return held.get("SET_OFM_HEIGHT_M1", {}).get("value", 0) > 0 and depth % 16 > 1


def _moving(operation: str, held: Registers, before: str) -> bool:
    """A pool whose result is transposed or reversed (Ethos-U85), or that reads what a pool before it wrote."""
    fields = held.get("SET_OFM_PRECISION", {})
    return operation == POOL and bool(fields.get("transpose") or fields.get("reverse") or before == POOL)


def _behind_another(operation: str, held: Registers, before: str) -> bool:
    """An elementwise operation behind one of another kind."""
    return operation == ELEMENTWISE and before not in ("", ELEMENTWISE)


def _less(value: int) -> int:
    return max(0, value - 1)


PLANTS = (
    Plant("pool-zero-point", "a pool's zero point is off", "OFM_ZERO_POINT", "value", lambda v: v + 1, _kind(POOL)),
    Plant("pool-reads-beside", "a pool reads one byte further on", "IFM_BASE0", "value", lambda v: v + 1, _kind(POOL)),
    Plant("depth-lost", "the last of odd channels is not written", "OFM_DEPTH_M1", "value", _less, _several),
    Plant("moved-row-lost", "a transposed result lacks a row", "OFM_HEIGHT_M1", "value", _less, _moving),
    Plant("bound", "the upper bound is 8 too low", "ACTIVATION_MAX", "value", lambda v: v - 8 & 0xFFFF, _moving),
    Plant("second-operand", "IFM2 begins a byte late", "IFM2_BASE0", "value", lambda v: v + 1, _kind(ELEMENTWISE)),
    Plant("elementwise-behind", "a zero point is lost", "OFM_ZERO_POINT", "value", lambda v: v + 3, _behind_another),
    Plant("written-beside", "a result is written 16 bytes late", "OFM_BASE0", "value", lambda v: v + 16, _moving),
    Plant("overtaken", "an operation begins too early", "BLOCKDEP", "value", lambda v: 3, _kind(POOL, ELEMENTWISE)),
)


@cache
def known_bugs() -> tuple[str, tuple[KnownBug, ...]]:
    """The installed Vela and what the checkout's corpus knows of it."""
    version = installed()[PACKAGE]
    return version, tuple(bugs_of(tally_of(version, known_entries(corpus_folders()), None).corpus))


def stands_there(program: Program, family: str) -> bool:
    """Is somewhere in the program what a condition with ``whole`` names?"""
    place = whole_place(program)
    patterns = (
        item
        for bug in known_bugs()[1]
        if not bug.families or f"ethos-{family}" in bug.families
        for item in bug.conditions
        if item.whole
    )
    return place is not None and any(anywhere(item).holds(place) for item in patterns)


@cache
def subjects(family: str, seed: int, count: int) -> tuple[Program, ...]:
    """Drawn programs that are clean and in which a pattern stands."""
    accelerator, found = FAMILIES[family], list[Program]()
    for block in range(400):
        drawn = [item for item in draw_programs(seed, block, BLOCK, family) if stands_there(item, family)]
        results = run(Plan(lambda _, drawn=drawn: (accelerator, drawn), most=BLOCK, judge=partial(judge, placed=False)))
        found += [drawn[result.place] for result in results if result.operators and result.outcome == "clean"]
        if len(found) >= count:
            break
    return tuple(found[:count])


@dataclass(frozen=True)
class Outcome:
    """What one finding of a plant was called."""

    plant: str
    program: Program
    called: str
    entry: str = ""
    why: str = ""


def outcomes(plant: Plant, family: str, seed: int, count: int) -> Iterator[Outcome]:
    """What the findings of a plant are called, one of each program that shows it."""
    judging = partial(judge, compile_tosa=plant.compile)
    for program in subjects(family, seed, count):
        plan = Plan(lambda _, program=program: (FAMILIES[family], [program]), most=1, judge=judging)
        findings = [item for result in run(plan) for item in result.findings]
        if findings:
            yield called(plant, program, findings[0], judging)


def called(plant: Plant, program: Program, finding: Finding, judging: Callable[..., object]) -> Outcome:
    """What a finding is called, at once or by its smallest program."""
    version, bugs = known_bugs()
    now = classified(finding, bugs)
    if now.known:
        return Outcome(plant.name, program, AT_ONCE, now.entry, now.proof)
    cause = Reducer({version: bugs}, {version: None}, SECONDS, judging, hasty=True).cause(program, now)
    if cause is None:
        return Outcome(plant.name, program, NOTHING)
    if not cause.finding.known:
        return Outcome(plant.name, cause.program, NEW)
    if _shows_anyway(cause):
        return Outcome(plant.name, cause.program, WANDERED, cause.finding.entry, cause.finding.proof)
    by = BY_FINGERPRINT if cause.finding.proof.startswith("its smallest program") else BY_PATTERN
    return Outcome(plant.name, cause.program, by, cause.finding.entry, cause.finding.proof)


def _shows_anyway(cause: Cause) -> bool:
    """Does the smallest program show the same without the plant?"""
    plan = Plan(lambda _: (cause.finding.target, [cause.program]), most=2 * BLOCK, judge=partial(judge, placed=False))
    shown = {shown_kind(item) for result in run(plan) for item in result.findings}
    return shown_kind(cause.finding) in shown


def main(arguments: Sequence[str]) -> int:
    """Run plants and print what was called known."""
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=[*FAMILIES])
    parser.add_argument("--programs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plant", action="append", choices=[plant.name for plant in PLANTS])
    asked = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for family in asked.families:
        for plant in PLANTS:
            if asked.plant and plant.name not in asked.plant:
                continue
            found = [*outcomes(plant, family, asked.seed, asked.programs)]
            counts = Counter(item.called for item in found)
            total += counts
            console.print(f"{family} {plant.name}: {len(found)} findings: {_worded(counts)}")
            for item in found:
                if item.entry:
                    console.print(f"  {item.called}: {' -> '.join(chain(item.program))}: {item.why}")
    console.print(f"together {total.total()} findings: {_worded(total)}")
    return int(any(total[word] for word in (AT_ONCE, BY_PATTERN, BY_FINGERPRINT, WANDERED)))


def _worded(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.most_common()) or "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
