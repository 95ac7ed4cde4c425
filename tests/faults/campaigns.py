"""Plants end to end: a campaign over drawn graphs must report each plant as new, with its blame.

``python -m tests.faults.campaigns [name…]`` prints the kill table and what is wrong in it; exit status 1 if a plant is
missed, called known, or blamed on a pass that is not its own.

The clean twin is the same campaign without the plant, run once for all plants that share it. What a plant did is a
finding whose case shows nothing of that kind in the twin. Those of the kinds that the plant asks for are *its*
findings: each must be new or resembling. *Blamed right* names the plant's pass, *bracket* has it between two passes.

Plants patch the installed packages of this process. Each case runs in a fork of it: start-up costs seconds, and Vela
may end a process by a signal.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Column, Table

from harness.campaign.campaign import Options, run_campaign
from harness.case.case import encode_case
from harness.case.wording import counted_as
from harness.compat.sources import source_of, text_of
from harness.triage.corpus import Entry, corpus_folders, entries
from harness.triage.findings import Finding
from harness.triage.proving import key_of
from harness.workers.protocol import Task
from tests.faults import pass_plants, payload_plants
from tests.faults.planted import Drawn, Plant, verdict_of
from tests.forked import Forked
from tests.integration.conftest import sigmoid_case

PLANTS: tuple[Plant, ...] = (*payload_plants.PLANTS, *pass_plants.PLANTS)
_BLAMED_WELL = ("right", "bracket")


@cache
def get_ready() -> None:
    """Have all that a worker has: forks have it then. What makes it fast changes this process for good."""
    from harness.compat.warm.collecting import between_cases
    from harness.workers.case_run import run_task
    from harness.workers.worker import get_ready as import_and_warm_up

    warnings.filterwarnings("ignore")
    import_and_warm_up([])
    for target in ("ethos-u55-128", "TOSA-1.0+INT"):
        file = Path(scratch().name) / "case.json"
        file.write_bytes(encode_case(sigmoid_case(target)))
        run_task(Task(case=str(file), probes="none"), lambda stage: None)
    between_cases()


@cache
def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for the runs of this process, which goes when it ends."""
    return tempfile.TemporaryDirectory()


@cache
def corpus() -> tuple[Entry, ...]:
    """The checkout's corpus."""
    return tuple(entries(corpus_folders(required=True)))


def campaign(drawn: Drawn, plant: Plant | None = None) -> tuple[Finding, ...]:
    """What a campaign reports and counts, known findings included.

    :raises AssertionError: a case could not be judged.
    """
    get_ready()
    folder = Path(scratch().name) / f"{plant.name if plant else 'clean'}-{drawn.target}-{drawn.seed}-{drawn.graphs}"
    options = Options(targets=(drawn.target,), max_examples=drawn.graphs, seed=drawn.seed, probes="none", out=folder)
    with plant.planted() if plant else nullcontext():
        tally = run_campaign(options, corpus(), lambda progress, result: None, workers=lambda jobs: Forked())
    assert not tally.problems, tally.problems
    assert not tally.stopped, tally.stopped
    assert tally.graphs == drawn.graphs
    return tuple(tally.counted)


@cache
def clean(drawn: Drawn) -> tuple[Finding, ...]:
    """The clean twin of a campaign."""
    return campaign(drawn)


@dataclass(frozen=True)
class Row:
    """One plant.

    :param found: its findings, known ones included: those that the clean twin does not have.
    :param seconds: of the planted campaign.
    """

    plant: Plant
    found: tuple[Finding, ...]
    seconds: float

    @property
    def own(self) -> tuple[Finding, ...]:
        """Its findings of the kinds that it asks for."""
        return tuple(item for item in self.found if _is_of(item, self.plant.shows))

    @property
    def new(self) -> tuple[Finding, ...]:
        """Those that count as new."""
        return tuple(item for item in self.own if not item.known)

    @property
    def known(self) -> tuple[Finding, ...]:
        """Findings of any kind that are the plant's and were taken for a known bug."""
        return tuple(item for item in self.found if item.known)

    @property
    def blamed(self) -> Counter[str]:
        """How often its new findings blame it: ``right``, ``bracket`` or what was named."""
        return Counter(_blame(item, self.plant) for item in self.new)

    @property
    def places(self) -> Counter[str]:
        """The operators that are named as the first wrong ones."""
        placed = (item.place for item in self.new if item.place is not None)
        return Counter(
            "|".join(sorted({place.operators[index].op for index in place.here})) for place in placed if place.here
        )

    @property
    def place_right(self) -> bool:
        """Is one of the operators asked for named wherever a place is named? True if none is asked for."""
        return not self.plant.here or all(set(text.split("|")) & {*self.plant.here} for text in self.places)

    @property
    def verdict(self) -> str:
        if not self.own:
            return "MISSED"
        return "CALLED KNOWN" if self.known else "new"

    @property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, a line each; none if the plant is reported as new and nobody else is blamed."""
        if not self.own:
            return (f"MISSED: none of {counted_as(len(self.found), 'finding')} is of {', '.join(self.plant.shows)}",)
        called = [f"CALLED KNOWN: {_short(item.bucket)} is {item.entry}: {item.proof}" for item in self.known]
        blamed = [
            f"BLAMED WRONG: {counted_as(many, 'finding')} {'names' if many == 1 else 'name'} {name}, "
            f"the plant is in {self.plant.blame}"
            for name, many in self.blamed.items()
            if name not in _BLAMED_WELL
        ]
        return (*called, *blamed)


def _is_of(finding: Finding, shows: Sequence[str]) -> bool:
    kind = finding.kind.removesuffix(", out-of-range input only")
    return finding.oracle in shows or f"{finding.oracle}/{kind}" in shows


def _blame(finding: Finding, plant: Plant) -> str:
    verdict = verdict_of(plant.blame, finding.pass_name, steps())
    return {"exact": "right", "bracket": "bracket"}.get(verdict, finding.pass_name or "nobody")


@cache
def steps() -> tuple[str, ...]:
    """What brackets are made of: the Arm passes in the order in which a backend runs them, then the serializer."""
    manager = source_of(text_of("executorch.backends.arm._passes.arm_pass_manager"), "ArmPassManager._tosa_pipeline")
    assert manager is not None, "the pass manager of this release has no _tosa_pipeline"
    return ("start", *re.findall(r"^\s*(\w+Pass)\(", manager, re.MULTILINE), "serializer")


def row(plant: Plant) -> Row:
    """Run a plant's campaign, and its twin's if nobody did."""
    return Row(plant, *outcome(plant.name))


def outcome(name: str, graphs: int | None = None) -> tuple[tuple[Finding, ...], float]:
    """What a plant did, and the seconds that its campaign took: nothing but data, for whoever asks from elsewhere.

    :param graphs: how many of its graphs are run; all by default.
    """
    [plant] = [plant for plant in PLANTS if plant.name == name]
    plant = replace(plant, drawn=replace(plant.drawn, graphs=graphs or plant.drawn.graphs))
    twin = {(Path(item.case).name, key_of(item)) for item in clean(plant.drawn)}
    started = time.monotonic()
    found = campaign(plant.drawn, plant)
    fresh = tuple(item for item in found if (Path(item.case).name, key_of(item)) not in twin)
    return fresh, time.monotonic() - started


def main(names: list[str]) -> int:
    """Run all plants, or those named, and print the kill table."""
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else 240)
    unknown = sorted(set(names) - {plant.name for plant in PLANTS})
    if unknown:
        progress.print(f"no such plant: {', '.join(unknown)}; known: {', '.join(plant.name for plant in PLANTS)}")
        return 2
    rows = []
    for plant in PLANTS:
        if not names or plant.name in names:
            rows.append(row(plant))
            progress.print(f"{plant.name}: {rows[-1].verdict}", highlight=False)
            for item in rows[-1].known:
                progress.print_json(msgspec.json.encode(item).decode())
    console.print(_table(rows), highlight=False)
    console.print(_totals(rows), highlight=False)
    return concluded(rows, console)


def concluded(rows: Sequence[Row], console: Console) -> int:
    """Print what is wrong, a line for each, and return the exit status."""
    failures = [f"{item.plant.name}: {failure}" for item in rows for failure in item.failures]
    for failure in failures:
        console.print(failure, highlight=False, markup=False, soft_wrap=True)
    return 1 if failures else 0


def _table(rows: Sequence[Row]) -> Table:
    table = Table(
        Column("plant", no_wrap=True),
        "stands for",
        "buckets",
        "caught",
        "blamed",
        "first wrong",
        "called new",
        "resembles",
        "seconds",
    )
    for item in rows:
        states = Counter(found.state for found in item.own)
        table.add_row(
            item.plant.name,
            item.plant.stands_for,
            "\n".join(sorted({_short(found.bucket) for found in item.own})),
            f"{len(item.own)}" if item.own else "MISSED",
            _counts(item.blamed),
            _counts(item.places) + ("" if item.place_right else f", not {'|'.join(item.plant.here)}"),
            _counts(states)
            if not item.known
            else f"{_counts(states)}; {', '.join(found.proof for found in item.known)}",
            ", ".join(sorted({found.entry for found in item.new if found.entry})) or "-",
            f"{item.seconds:.0f}",
        )
    return table


def _short(bucket: str) -> str:
    """Oracle, kind, pass and signature of a bucket."""
    words = bucket.split("/")
    return "/".join((*words[1:3], *words[4:5], *words[6:]))


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "-"


def _totals(rows: Sequence[Row]) -> str:
    blamed = sum((item.blamed for item in rows), Counter[str]())
    many = blamed.total()
    return "\n".join(
        [
            f"caught: {sum(bool(item.own) for item in rows)}/{len(rows)}, "
            f"in the payload: {sum(item.plant.in_payload for item in rows)}",
            f"called new: {sum(item.verdict == 'new' for item in rows)}/{len(rows)} plants, "
            f"{sum(len(item.new) for item in rows)}/{sum(len(item.own) for item in rows)} findings",
            f"blamed right: {blamed['right']}/{many} findings, in a bracket: {blamed['bracket']}, "
            f"wrong: {many - blamed['right'] - blamed['bracket']}",
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
