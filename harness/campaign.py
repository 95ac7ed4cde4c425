"""A campaign: draw graphs block by block, run each on every target, tally.

A block is ``BLOCK`` graphs drawn from (seed, block number), so the same seed gives the same
graphs and shards own blocks (shard i of n runs the blocks with number = i - 1 modulo n). Every
case is written to ``OUT/cases`` before it is run, every finding to ``OUT/findings.jsonl`` at once.
Drawing costs milliseconds and happens in this process; everything that imports torch happens in
the pool's workers.

Invariants: with ``max_examples`` and no time limit, a run is a function of its options; a time
limit only cuts the sequence of graphs short.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.case import Case, case_digest, encode_case
from harness.corpus import Entry
from harness.engines import EngineChoice
from harness.errors import CannotRun
from harness.pool import Pool
from harness.probes import ProbeMode
from harness.protocol import CaseResult, Task
from harness.summary import Tally
from harness.triage import Finding

BLOCK = 20


@dataclass(frozen=True)
class Options:
    """What a campaign was asked for.

    :param max_examples: graphs to draw (None: until the time is over).
    :param seconds: time limit, or None.
    :param shard: (index from 1, count).
    :param strict: information counts as a finding.
    :param ethos_u_engine: which legs execute an Ethos-U command stream (``harness.engines``).
    :param corrections: names or files of the corrections that apply (``harness.corrections``).
    """

    targets: Sequence[str]
    max_examples: int | None = 100
    seconds: float | None = None
    seed: int = 0
    jobs: int = 1
    shard: tuple[int, int] = (1, 1)
    out: Path = Path("armdiff-out")
    plant: bool = False
    confirm: bool = True
    probes: ProbeMode = "default"
    strict: bool = False
    ethos_u_engine: EngineChoice = "default"
    corrections: tuple[str, ...] = ()


@dataclass
class Progress:
    """What the loop knows while it runs."""

    tally: Tally
    started: float = field(default_factory=time.monotonic)

    @property
    def graphs_per_minute(self) -> float:
        return 60.0 * self.tally.graphs / max(time.monotonic() - self.started, 1e-3)


def graph_cases(options: Options) -> Iterator[tuple[Case, ...]]:
    """Drawn graphs, each as one case a target, until the options' number is reached."""
    # Hypothesis keeps its caches in the current folder unless told otherwise
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(options.out / ".hypothesis"))
    from generators.cases import draw_block

    index, count = options.shard
    block, drawn, seen = index - 1, 0, set()
    while options.max_examples is None or drawn < options.max_examples:
        for cases in draw_block(options.seed, block, BLOCK, options.targets):
            digest = case_digest(cases[0])
            if digest in seen:
                continue
            seen.add(digest)
            yield cases
            drawn += 1
            if drawn == options.max_examples:
                return
        block += count


def run_campaign(options: Options, corpus: Sequence[Entry], report: Callable[[Progress, CaseResult], None]) -> Tally:
    """Run a campaign to its end (or its time limit, or Ctrl-C) and return the tally.

    :param report: called after every case, in order.
    """
    progress = Progress(Tally(corpus, strict=options.strict))

    def tasks() -> Iterator[Task]:
        for cases in graph_cases(options):
            if options.seconds is not None and time.monotonic() - progress.started > options.seconds:
                return
            for case in cases:
                confirmed = tuple(sorted({finding.bucket for finding in progress.tally.findings}))
                yield Task(
                    case=str(write_case(case, options.out / "cases")),
                    plant=options.plant,
                    confirm=options.confirm,
                    confirmed=confirmed,
                    probes=options.probes,
                    ethos_u_engine=options.ethos_u_engine,
                    corrections=options.corrections,
                )

    per_graph = 0
    with Pool(options.jobs) as pool:
        try:
            for result in pool.run(tasks()):
                progress.tally.add(result)
                _keep(progress.tally.findings[-len(result.findings) :] if result.findings else [], options.out)
                per_graph += 1
                if per_graph == len(options.targets):
                    progress.tally.graphs += 1
                    per_graph = 0
                report(progress, result)
        except KeyboardInterrupt:
            progress.tally.problems.append("interrupted: the report covers what was done until then")
    return progress.tally


def _keep(findings: Sequence[Finding], out: Path) -> None:
    """Append findings to OUT/findings.jsonl as they come, so that nothing found is lost."""
    if findings:
        with (out / "findings.jsonl").open("ab") as file:
            for finding in findings:
                file.write(msgspec.json.encode(finding) + b"\n")


def write_case(case: Case, folder: Path) -> Path:
    """Write a case under its digest; returns the file.

    :raises CannotRun: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{case_digest(case)}.json"
        file.write_bytes(encode_case(case))
    except OSError as error:
        raise CannotRun(f"{folder}: cannot be written ({error.strerror}); give another --out") from None
    return file
