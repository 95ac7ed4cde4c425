"""The ways of looking for bugs that are compared. To add one: an entry in ``CONTESTANTS``.

A contestant goes on with its course in a folder of its own until the budget is spent. Campaigns keep it as the folder
of a run (``harness.campaign.run_folder``), which can be looked at and reported on like any other; the Vela engine
writes a line a block.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.campaign.campaign import Options, Source, drawn_graphs, run_campaign
from harness.campaign.mutating import UPSTREAM, mutated
from harness.campaign.run_folder import INFO, Done, cut_half_line, mended, read_run
from harness.case.errors import BadInput, CannotRun
from harness.case.interrupts import Interrupted, deferred
from harness.case.processor_time import children_seconds
from harness.case.target import parse_target
from harness.cli.benchmark.rediscovery.course import Course, Step, looks_of, step_of
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.ethosu.accelerator import ACCELERATORS, accelerator_named, in_turn
from harness.tosa.causes import Reducer, marked
from harness.tosa.comparing_twins import judge_with_twins
from harness.tosa.engine import BLOCK, Plan, Result, run
from harness.tosa.program import Program
from harness.tosa.versions import tally_of
from harness.triage.corpus import Entry, bugs_of
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified
from harness.workers.pool import CaseRunner, Pool
from harness.workers.protocol import CaseResult

if TYPE_CHECKING:
    from generators.motifs import Motif

STEPS = "steps.jsonl"
GOES_ON = "the same command goes on"
_LINK, _THREAD = re.compile(r"/(?:issues|pull)/(\d+)"), re.compile(r"#\d+")


@dataclass(frozen=True)
class Asked:
    """A course to go on with.

    :param seconds: of processor time, earlier sittings included.
    :param folder: where the course is kept.
    :param told: receives the course's time, and what ran, after each step.
    :param jobs: workers of a campaign; the course is the same with any number.
    """

    seed: int
    seconds: float
    targets: tuple[str, ...]
    folder: Path
    corpus: Sequence[Entry]
    told: Callable[[float, int], None] = lambda seconds, ran: None
    jobs: int = 1


@dataclass(frozen=True)
class Contestant:
    """A way of looking for bugs.

    :param what: what it does, in a few words.
    :param packages: those whose bugs it can see.
    :param go_on: spends what is left of the budget.
    :param steps: what it has done so far, held against known bugs.
    :param cold: it knows nothing of the corpus.
    """

    name: str
    what: str
    packages: tuple[str, ...]
    go_on: Callable[[Asked], None]
    steps: Callable[[Path, Sequence[KnownBug]], tuple[Step, ...]]
    cold: bool = True

    def course(self, seed: int, folder: Path, bugs: Sequence[KnownBug]) -> Course:
        """The course that lies in a folder; an empty one if none does."""
        return Course(self.name, seed, self.steps(folder, bugs))


def all_motifs(corpus: Sequence[Entry]) -> tuple[Motif, ...]:
    """Every motif."""
    from generators.motifs import MOTIFS

    return MOTIFS


def cold_motifs(corpus: Sequence[Entry]) -> tuple[Motif, ...]:
    """The motifs but those that were written for a bug of the corpus: an entry links what they come from."""
    linked = {f"#{number}" for entry in corpus for link in entry.status.upstream for number in _LINK.findall(link)}
    return tuple(motif for motif in all_motifs(corpus) if not linked & {*_THREAD.findall(motif.origin)})


def no_motifs(corpus: Sequence[Entry]) -> tuple[Motif, ...]:
    """No motif at all."""
    return ()


@dataclass(frozen=True)
class Campaign:
    """A campaign without minimization.

    :param steer: of the graphs that are drawn, run only the rarest.
    :param motifs: what graphs may begin with.
    :param sources: what is mutated in the place of drawing (``harness.campaign.mutating``); none: graphs are drawn.
    """

    steer: bool = True
    motifs: Callable[[Sequence[Entry]], Sequence[Motif]] = cold_motifs
    sources: tuple[str, ...] = ()
    workers: Callable[[int], CaseRunner] = field(default=Pool)

    def go_on(self, asked: Asked) -> None:
        """Run cases until the budget is spent; what had begun by then is part of it."""
        resume = (asked.folder / INFO).exists()
        options = Options(
            asked.targets,
            max_examples=None,
            seed=asked.seed,
            out=asked.folder,
            resume=resume,
            jobs=asked.jobs,
            steer=self.steer,
            sources=self.sources,
        )
        spent = [step.processor for step in campaign_steps(asked.folder, options=options)] if resume else []

        def report(_: object, result: CaseResult) -> None:
            spent.append(_own(result))
            asked.told(sum(spent), len(spent))

        source = until(self._source(options, asked.corpus), lambda: sum(spent) >= asked.seconds)
        tally = run_campaign(options, asked.corpus, report, workers=self.workers, source=source)
        if tally.stopped:
            raise CannotRun(tally.stopped)
        if tally.interrupted:
            raise Interrupted(f"interrupted; {GOES_ON}")

    def _source(self, options: Options, corpus: Sequence[Entry]) -> Source:
        if self.sources:
            return mutated(options, self.sources)
        from generators.cases import draw_block

        return drawn_graphs(options, partial(draw_block, motifs=self.motifs(corpus)))


def until(source: Source, over: Callable[[], bool]) -> Source:
    """A source that gives no further graph when something is over."""

    return lambda pool: itertools.takewhile(lambda _: not over(), source(pool))


def campaign_steps(folder: Path, bugs: Sequence[KnownBug] = (), options: Options | None = None) -> tuple[Step, ...]:
    """The cases of a campaign's folder, in order.

    :param bugs: what findings are held against: conditions are looked at again, so that a bug that got its entry
        after it was seen counts as seen then. Corrections are not tried again.
    :param options: what the course is asked to be.
    :raises BadInput: the folder's is another one, or of other packages.
    """
    if not (folder / INFO).exists():
        return ()
    mended(folder)
    found = read_run(folder)
    if found.info.releases != dict(installed()) or (options is not None and found.info.asked != options.asked):
        raise BadInput(
            str(folder), "is a course of other packages, targets or options", "remove it, or give another --out"
        )
    return tuple(_step(done, bugs) for done in found.done)


def _step(done: Done, bugs: Sequence[KnownBug]) -> Step:
    return step_of((classified(finding, bugs) for finding in done.result.findings), _own(done.result), 1)


def _own(result: CaseResult) -> float:
    """Processor time of a case without proofs."""
    return max(0.0, result.processor - result.proofs)


@dataclass(frozen=True)
class Engine:
    """The Vela engine on one core: programs drawn for all sizes of the targets' families, in turn.

    What no condition proves is reduced, one finding of each bucket and chain of operators, and its smallest program
    tells. Like proofs of campaigns, that is no part of the budget.
    """

    def go_on(self, asked: Asked) -> None:
        """Judge blocks of programs until the budget is spent; a block that is not done leaves nothing."""
        from generators.programs import draw_programs

        families = {accelerator_named(name).family for name in asked.targets if parse_target(name).ethos_u}
        if not families:
            raise BadInput("--target", "names no Ethos-U, which this contestant is about", "add ethos-u55-128")
        turns = in_turn([item.name for item in ACCELERATORS.values() if item.family in families])
        asked.folder.mkdir(parents=True, exist_ok=True)
        done = [*engine_steps(asked.folder)]

        def source(block: int) -> tuple[str, Sequence[Program]]:
            accelerator = turns[(first + block) % len(turns)]
            family = accelerator_named(accelerator).family
            return accelerator, draw_programs(asked.seed, first + block, BLOCK, family)

        first = len(done)
        judging = _Judging(asked.corpus, {text for step in done for text in step.unproved})
        plan = Plan(source, judge=partial(judge_with_twins, every=False, vetted=True))
        with deferred(lambda: GOES_ON), (asked.folder / STEPS).open("ab") as file:
            for results in _blocks(run(plan)):
                done.append(judging.step(results))
                file.write(msgspec.json.encode(done[-1]) + b"\n")
                file.flush()
                spent = sum(step.processor for step in done)
                asked.told(spent, sum(step.ran for step in done))
                if spent >= asked.seconds:
                    return


def _blocks(results: Iterable[Result]) -> Iterator[list[Result]]:
    """The results of each block, once the next one has begun; what a block took to draw comes first."""
    block: list[Result] = []
    drawn: list[Result] = []
    for result in results:
        if not result.accelerator:
            drawn.append(result)
            continue
        if block and block[-1].block != result.block:
            yield block
            block = []
        block += [*drawn, result]
        drawn = []


@dataclass
class _Judging:
    """Makes steps of results.

    :ivar tried: what findings look like of which one was reduced.
    """

    corpus: Sequence[Entry]
    tried: set[str]

    def __post_init__(self) -> None:
        self._clock = _EngineClock()
        version = installed()[PACKAGE]
        self._tally = tally_of(version, self.corpus, None)
        self._reducer = Reducer({version: bugs_of(self._tally.corpus)}, {version: None}, hasty=True)

    def step(self, results: Sequence[Result]) -> Step:
        """The step of a block."""
        before = len(self._tally.findings)
        for result in results:
            self._tally.add(result)
        spent = self._clock.spent(sum(sum(result.seconds.values()) for result in results))
        findings = [self._proved(finding) for finding in self._tally.findings[before:]]
        self._clock.leave_out()
        return step_of(findings, round(spent, 3), sum(bool(result.accelerator) for result in results))

    def _proved(self, finding: Finding) -> Finding:
        looks = looks_of(finding)
        if finding.known or looks in self.tried:
            return finding
        self.tried.add(looks)
        cause = self._reducer.cause(self._tally.smallest[finding.case], finding)
        return finding if cause is None else marked(finding, cause)


class _EngineClock:
    """Processor time of the engine's children: what results say, and what those spent that died before they said it."""

    def __init__(self) -> None:
        self._ended = children_seconds()
        self._told = 0.0

    def spent(self, told: float) -> float:
        """Of a block; results say ``told``."""
        self._told += told
        ended = children_seconds() - self._ended
        if not ended:
            return told
        lost, self._told = max(0.0, ended - self._told), 0.0
        return told + lost

    def leave_out(self) -> None:
        """Do not count the children that ended since a block's end."""
        self._ended = children_seconds()


def engine_steps(folder: Path, bugs: Sequence[KnownBug] = ()) -> tuple[Step, ...]:
    """The blocks that an engine's folder holds, in order; a line that a kill cut off is dropped.

    They keep no findings, and so what they were held against when they ran, whatever is known now.
    """
    file = folder / STEPS
    if not file.exists():
        return ()
    cut_half_line(file)
    return tuple(msgspec.json.decode(line, type=Step) for line in file.read_bytes().splitlines())


VELA, EXECUTORCH = PACKAGE, "executorch"
_BOTH = (EXECUTORCH, VELA)


def _campaign(name: str, what: str, campaign: Campaign, cold: bool = True) -> Contestant:
    return Contestant(name, what, _BOTH, campaign.go_on, campaign_steps, cold)


CONTESTANTS: Mapping[str, Contestant] = {
    item.name: item
    for item in (
        _campaign("campaign", "as 'armdiff fuzz --time', without motifs written for one bug of the corpus", Campaign()),
        _campaign("no-steer", "as campaign, and every graph that is drawn runs (--no-steer)", Campaign(steer=False)),
        _campaign("no-motifs", "as campaign, and no graph begins with a motif", Campaign(motifs=no_motifs)),
        _campaign("mutation", "as campaign, with mutants of upstream's tests", Campaign(sources=(UPSTREAM,))),
        _campaign("all-motifs", "as campaign, with all motifs", Campaign(motifs=all_motifs), cold=False),
        Contestant("vela", "'armdiff vela': TOSA programs, without PyTorch", (VELA,), Engine().go_on, engine_steps),
    )
}
"""All of them; those that are cold are the default."""
