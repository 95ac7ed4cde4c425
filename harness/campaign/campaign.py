"""A campaign: draw graphs block by block, run each on its targets, keep everything on disk, minimize what is new.

A block is ``BLOCK`` graphs drawn from (seed, block number), so the same seed gives the same graphs and shards own
blocks (shard i of n runs the blocks with number = i - 1 modulo n). Drawing costs milliseconds and happens in this
process; everything that imports torch happens in the pool's workers. The run's folder
(``harness.campaign.run_folder``) has each case before it is run and each result as soon as it is there.

Invariants: with ``max_examples`` and no time limit, a run is a function of what was asked; a time limit only cuts
the sequence of graphs short, and includes minimization and reports. A campaign that was ended by anything goes on
where it was when it is resumed. Ctrl-C and SIGTERM end it in good order (``harness.case.interrupts``).
"""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import __version__
from harness.campaign.budget import Budget
from harness.campaign.run_folder import CASES, Asked, Done, RunInfo, append, cannot_write, mended, read_run, write_info
from harness.campaign.steering import OF, Rarest
from harness.campaign.summary import Tally, until_interrupted
from harness.case.case import Case, case_digest, encode_case
from harness.case.errors import CannotRun
from harness.case.interrupts import again, check
from harness.compat.releases import installed, release_line
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.triage.corpus import Entry, bugs_of
from harness.workers.pool import CaseRunner, Pool
from harness.workers.protocol import CaseResult, Task

BLOCK = 20

STORED = 10**9
"""Number of the first graph that comes from an example database; drawn graphs stay below."""


@dataclass(frozen=True)
class Options:
    """What a campaign was asked for.

    :param max_examples: graphs to draw, all shards together (None: until the time is over).
    :param seconds: time limit, or None.
    :param shard: (index from 1, count).
    :param strict: information counts as a finding.
    :param ethos_u_engine: which legs execute an Ethos-U command stream (``harness.pipeline.engines``).
    :param corrections: names or files of the corrections that apply (``harness.corrections``).
    :param resume: go on with the run in ``out``.
    :param database: places of an example database (``generators.search``), whose graphs run first.
    :param expect: the release line whose expectations hold if the installed packages form none.
    :param steer: of the graphs that are drawn, run only the rarest (``harness.campaign.steering``).
    :param suite: the paths of upstream's tests whose modules run instead of drawn graphs; None: graphs are drawn.
    :param words: of those tests, only the ones whose name has one of these words (none: all).
    :param sources: what is mutated in the place of drawing (``harness.campaign.mutating``); none: graphs are drawn.
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
    resume: bool = False
    database: tuple[str, ...] = ()
    expect: str = ""
    steer: bool = False
    suite: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def asked(self) -> Asked:
        """The part that a resumed run must share."""
        return Asked(
            targets=tuple(self.targets),
            max_examples=self.max_examples,
            seconds=self.seconds,
            seed=self.seed,
            shard=self.shard,
            probes=self.probes,
            strict=self.strict,
            ethos_u_engine=self.ethos_u_engine,
            corrections=self.corrections,
            expect=self.expect,
            steer=self.steer,
            suite=self.suite,
            words=self.words,
            sources=self.sources,
        )


@dataclass
class Progress:
    """What the loop knows while it runs.

    :ivar earlier: seconds and graphs of the sittings before this one.
    :ivar drawn: graphs that had been drawn when the last one came that ran, others' and those passed over included.
    """

    tally: Tally
    started: float = field(default_factory=time.monotonic)
    earlier: tuple[float, int] = (0.0, 0)
    drawn: int = 0

    @property
    def seconds(self) -> float:
        """Wall time of all sittings."""
        return self.earlier[0] + time.monotonic() - self.started

    @property
    def graphs_per_minute(self) -> float:
        """Of this sitting."""
        done = self.tally.graphs - self.earlier[1]
        return 60.0 * done / max(time.monotonic() - self.started, 1e-3)


@dataclass
class Ran:
    """The cases of a campaign that were run.

    :param targets: cases of a graph.
    :param some: a graph may have fewer cases, and is counted with its first.
    :ivar numbers: of the cases: graph times targets plus the place of the target.
    :ivar graphs: graphs of which every target's case was run.
    """

    targets: int
    some: bool = False
    numbers: set[int] = field(default_factory=set, init=False)
    graphs: int = field(default=0, init=False)

    def add(self, number: int) -> None:
        """Count a case (once)."""
        if number in self.numbers:
            return
        first = number - number % self.targets
        if self.some:
            self.graphs += not any(first + place in self.numbers for place in range(self.targets))
        self.numbers.add(number)
        if not self.some:
            self.graphs += all(first + place in self.numbers for place in range(self.targets))


def keep_hypothesis_in(folder: Path) -> None:
    """Have Hypothesis keep its caches in a folder, and not in the current one; to be said before it is imported."""
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(folder / ".hypothesis"))


_Drawn = tuple[int, int, tuple[Case, ...]]
"""A graph's number, its block and its cases."""
Block = Callable[[int, int, int, Sequence[str]], Sequence[tuple[Case, ...]]]
"""Draws a block: seed, its number, graphs, targets (``generators.cases.draw_block``)."""


def graph_cases(options: Options, draw: Block | None = None) -> Iterator[tuple[int, tuple[Case, ...]]]:
    """This shard's graphs with their numbers in the whole campaign, each as one case a target.

    Without ``max_examples`` a graph has one case, and the targets take turns (``Asked.in_turn``); what is rare on one
    of them may not be on another.

    Graphs of the example database come first and beside the number that was asked for; a resumed run, which has begun
    with them, leaves them out. Every shard draws all blocks, which is cheap, and runs its own: so all know
    which graphs occurred before, and the shards of a campaign of ``max_examples`` graphs run the very graphs that
    it would run as a whole.

    :param draw: how a block is drawn, if not as usual.
    """
    keep_hypothesis_in(options.out)
    from generators.cases import draw_block
    from generators.search import database_at, stored

    index, count = options.shard
    if options.database and not options.resume:
        for place, cases in enumerate(stored(database_at(options.database), options.targets)):
            if place % count == index - 1:
                yield STORED + place, cases
    turns = len(options.targets) if options.asked.in_turn else 1
    drawn, seen, found = 0, set(), [Rarest[_Drawn](OF if options.steer else 1) for _ in range(turns)]
    for block in itertools.count():
        for cases in (draw or draw_block)(options.seed, block, BLOCK, options.targets):
            digest = case_digest(cases[0])
            if digest in seen:
                continue
            seen.add(digest)
            turn = drawn % turns
            mine = cases[turn::turns]
            drawn += 1
            taken = found[turn].offer((drawn - 1, block, mine), mine[0])
            if drawn == options.max_examples:
                taken = taken or found[turn].last()
            if taken is not None and taken[1] % count == index - 1:
                yield taken[0], taken[2]
            if drawn == options.max_examples:
                return


Source = Callable[[CaseRunner], Iterator[tuple[int, Sequence[tuple[int, Case | Path]]]]]
"""Gives numbers of graphs, each with its cases (or their files) and the place of each one's target."""


def drawn_graphs(options: Options, draw: Block | None = None) -> Source:
    """The source that draws."""

    def placed(cases: Sequence[Case]) -> Sequence[tuple[int, Case]]:
        return tuple((options.targets.index(case.target), case) for case in cases)

    return lambda _: ((number, placed(cases)) for number, cases in graph_cases(options, draw))


def nothing_more(progress: Progress, pool: CaseRunner, budget: Budget) -> Sequence[str]:
    """Leave the findings as they are."""
    return ()


def run_campaign(
    options: Options,
    corpus: Sequence[Entry],
    report: Callable[[Progress, CaseResult], None],
    afterwards: Callable[[Progress, CaseRunner, Budget], Sequence[str]] = nothing_more,
    workers: Callable[[int], CaseRunner] = Pool,
    goes_on: Callable[[], str] = again,
    source: Source | None = None,
) -> Tally:
    """Run a campaign to its end (or its time limit, or a signal) and return the tally.

    :param report: called after every case, in order.
    :param afterwards: what is done with the findings while the workers are warm; returns what was left undone.
    :param workers: makes a pool of so many workers.
    :param goes_on: says how to go on after a signal.
    :param source: where the cases come from; by default, graphs are drawn.
    """
    source = source or drawn_graphs(options)
    budget = Budget(options.seconds)
    progress, info, done = _begun(options, corpus)
    with until_interrupted(progress.tally, goes_on), workers(options.jobs) as pool:
        try:
            for number, result in _results(options, pool, progress.tally, budget, done, source):
                append(options.out, [Done(number=number, at=round(progress.seconds, 3), result=result)])
                progress.tally.add(result)
                done.add(number)
                progress.tally.graphs = done.graphs
                report(progress, result)
            graphs = (number // len(options.targets) for number in done.numbers)
            progress.drawn = max((graph + 1 for graph in graphs if graph < STORED), default=0)
            left = tuple(afterwards(progress, pool, budget))
            info = _replace(info, state="done", left=left)
        except CannotRun as error:
            progress.tally.stopped = str(error)
    if info.state != "done":
        info = _replace(info, state="interrupted")
    problems = (*progress.tally.problems, *filter(None, [progress.tally.stopped]))
    try:
        write_info(
            options.out,
            _replace(
                info,
                ended=round(time.time(), 3),
                seconds=round(progress.seconds, 3),
                cases=len(done.numbers),
                problems=problems,
            ),
        )
    except CannotRun as error:
        progress.tally.stopped = progress.tally.stopped or str(error)
    return progress.tally


def _begun(options: Options, corpus: Sequence[Entry]) -> tuple[Progress, RunInfo, Ran]:
    """Begin a run's folder, or read the one to go on with."""
    progress = Progress(Tally(corpus, strict=options.strict, again=options.asked.again))
    info = RunInfo(
        armdiff=__version__,
        releases=dict(installed()),
        line=release_line(),
        asked=options.asked,
        started=round(time.time(), 3),
    )
    done = Ran(len(options.targets), some=options.suite is not None or options.asked.in_turn)
    if options.resume:
        mended(options.out)
        run = read_run(options.out)
        for item in run.done:
            progress.tally.add(item.result)
            done.add(item.number)
        progress.tally.graphs = done.graphs
        progress.earlier = (max([run.info.seconds, *(item.at for item in run.done)]), progress.tally.graphs)
        info = _replace(info, started=run.info.started, seconds=progress.earlier[0])
    write_info(options.out, info)
    return progress, info, done


def _results(
    options: Options, pool: CaseRunner, tally: Tally, budget: Budget, done: Ran, source: Source
) -> Iterator[tuple[int, CaseResult]]:
    """Numbers and results of the cases that were not run yet, in order."""
    running: deque[int] = deque()
    known = bugs_of(tally.corpus)

    def tasks() -> Iterator[Task]:
        for graph, cases in source(pool):
            check()
            for place, case in cases:
                number = graph * len(options.targets) + place
                if number in done.numbers:
                    continue
                if place == cases[0][0] and budget.drawing_is_over(tally, len(running)):
                    return
                confirmed = tuple(sorted({finding.bucket for finding in tally.findings}))
                path = case if isinstance(case, Path) else write_case(case, options.out / CASES)
                running.append(number)
                yield Task(
                    case=str(path),
                    plant=options.plant,
                    confirm=options.confirm,
                    confirmed=confirmed,
                    known=known,
                    probes=options.probes,
                    ethos_u_engine=options.ethos_u_engine,
                    corrections=options.corrections,
                    graph=str(graph),
                )

    for result in pool.run(tasks()):
        yield running.popleft(), result


def _replace(info: RunInfo, **changes: object) -> RunInfo:
    import msgspec

    return msgspec.structs.replace(info, **changes)


def write_case(case: Case, folder: Path) -> Path:
    """Write a case under its digest; returns the file.

    :raises CannotRun: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{case_digest(case)}.json"
        file.write_bytes(encode_case(case))
    except OSError as error:
        raise cannot_write(folder, error) from None
    return file
