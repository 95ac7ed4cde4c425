"""What a report is made of: a run's results with known findings marked, and the case of every graph.

Words: a *graph* has one case a target, so its number is the case's number divided by the number of
targets; it is *complete* when all of its cases are done. A finding is *seen* at a case number, and its
*entry* is the corpus entry whose bug it is.

Case files are looked up by name in the run's own folder, so that a run that was moved, or came out of a
CI artifact, can be reported on. A file that is missing or damaged costs its graph's share of the coverage
and is told; it never ends the report.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.campaign.run_folder import BUGS, CASES, Minimized, Run, RunInfo
from harness.campaign.summary import Tally
from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.triage.corpus import Entry, judged_by
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult


@dataclass(frozen=True)
class Seen:
    """A finding of a run.

    :param number: the case's number in the run; ``graph`` that of its graph.
    :param entry: the corpus entry whose bug it is; None for a new one.
    :param like: that entry, or the one that it resembles; None if there is none.
    :param line: the release line that it was seen on, as ``RunInfo.line_name`` calls it.
    """

    finding: Finding
    number: int
    graph: int
    entry: Entry | None
    like: Entry | None
    line: str


@dataclass(frozen=True)
class JudgedRun:
    """A run with its findings marked.

    :param seen: findings that count, in the order of the cases; ``information`` those that do not.
    :param graphs: complete graphs; ``unfinished`` counts the others of which a case is done.
    :param parts: the runs that it was merged from (``harness.reports.reporting.merging``), none for a single run.
    """

    run: Run
    tally: Tally
    seen: tuple[Seen, ...]
    information: tuple[Finding, ...]
    graphs: int
    unfinished: int
    parts: tuple[JudgedRun, ...] = ()

    @property
    def runs(self) -> tuple[JudgedRun, ...]:
        """Every run in it: its parts, or itself."""
        return self.parts or (self,)

    @property
    def infos(self) -> tuple[RunInfo, ...]:
        """What each run says of itself."""
        return tuple(part.run.info for part in self.runs)

    def name_of(self, part: JudgedRun) -> str:
        """What a part is called: its folder, as seen from the one that holds all."""
        return os.path.relpath(part.run.folder, self.run.folder)

    @property
    def lines(self) -> tuple[str, ...]:
        """The release lines of its runs, by name."""
        return tuple(dict.fromkeys(part.run.info.line_name for part in self.runs))

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that were asked for, then those of results beyond them."""
        extra = {item.result.target for item in self.run.done if item.result.target}
        return tuple(dict.fromkeys((*self.run.info.asked.targets, *sorted(extra))))


def tallied(run: Run, corpus: Sequence[Entry]) -> JudgedRun:
    """Tally a run, its findings marked as the corpus knows them on the run's release line."""
    corpus = judged_by(corpus, run.info.judged_as)
    entries = {entry.name: entry for entry in corpus}
    tally = Tally(corpus, strict=run.info.asked.strict)
    seen: list[Seen] = []
    cases: Counter[int] = Counter()
    for item in run.done:
        before = len(tally.findings)
        tally.add(item.result)
        graph = graph_of(run, item.number)
        cases[graph] += 1
        for finding in tally.findings[before:]:
            if tally.strict or not finding.information:
                like = entries.get(finding.entry)
                entry = like if finding.known else None
                seen.append(Seen(finding, item.number, graph, entry, like, run.info.line_name))
    wanted = 1 if run.info.asked.in_turn else per_graph(run)
    tally.graphs = sum(count >= wanted for count in cases.values())
    tally.problems += run.info.problems
    return JudgedRun(run, tally, tuple(seen), tuple(tally.information), tally.graphs, len(cases) - tally.graphs)


def per_graph(run: Run) -> int:
    """Numbers of one graph: as many as there are targets."""
    return max(1, len(run.info.asked.targets))


def graph_of(run: Run, number: int) -> int:
    """The graph of a case, by the case's number."""
    return number // per_graph(run)


@dataclass(frozen=True)
class Drawn:
    """The graphs of a run.

    :param cases: graph -> one of its cases, with a quantized target where it has one.
    :param valid: the graphs of which a case was a test.
    :param unreadable: case file -> why it could not be read.
    """

    cases: Mapping[int, Case]
    valid: frozenset[int]
    unreadable: Mapping[str, str]


def drawn(run: Run) -> Drawn:
    """Read one case of every graph."""
    chosen: dict[int, CaseResult] = {}
    valid = set()
    for item in run.done:
        graph = graph_of(run, item.number)
        if graph not in chosen or (_quantized(item.result.target) and not _quantized(chosen[graph].target)):
            chosen[graph] = item.result
        if item.result.invalid is None:
            valid.add(graph)
    cases: dict[int, Case] = {}
    unreadable = {}
    for graph, result in chosen.items():
        case = case_at(run, result.case)
        if isinstance(case, Case):
            cases[graph] = case
        else:
            unreadable[Path(result.case).name] = case
    return Drawn(cases, frozenset(valid), unreadable)


def _quantized(target: str) -> bool:
    try:
        return parse_target(target).quantized
    except BadInput:  # a case that could not be read has no target
        return False


def case_file(run: Run, path: str) -> Path:
    """Where a case lies: in the run's cases by its name, or below the run's folder by a relative path."""
    name = PurePosixPath(path).name
    below = run.folder / path
    inside = ".." not in PurePosixPath(path).parts and not Path(path).is_absolute()
    for file in (below if inside else None, run.folder / CASES / name if name else None):
        if file is not None and os.path.exists(file):  # Path.exists raises where a name is too long
            return file
    return run.folder / CASES / name


def relative(run: Run, path: str, folder: Path | None) -> str:
    """A case's path as seen from a folder (None: the run's); as it is if there is no such case."""
    file = case_file(run, path)
    there = os.path.abspath(folder or run.folder)
    return Path(os.path.relpath(os.path.abspath(file), there)).as_posix() if os.path.exists(file) else path


def replay_command(run: Run, path: str, oracle: str, folder: Path | None) -> str:
    """The command that shows a finding of an oracle again, to be given in a folder (None: the run's)."""
    return run.info.asked.again.command(relative(run, path, folder), oracle)


def bug_folder(run: Run, item: Minimized) -> Path | None:
    """The folder that was written for a minimized bucket, if it is there and among the bugs of a run inside."""
    place = Path(os.path.normpath(run.folder / BUGS / item.folder))
    inside = place.parent.name == BUGS and place.is_relative_to(run.folder)
    return place if item.folder and inside and os.path.isdir(place) else None


def case_at(run: Run, path: str) -> Case | str:
    """A case of a run, or why it cannot be read."""
    try:
        return read_case(case_file(run, path))
    except BadInput as error:
        return str(error)
    except ValueError:
        return f"{path!r} is no path"
