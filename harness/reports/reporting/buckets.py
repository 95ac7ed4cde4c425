"""The buckets of a run, one for each way a bug shows, collected into bugs and ranked.

A *bucket* here is a coarse key regardless of the target family (``harness.triage.buckets.any_family``), and one
corpus entry's share of it if the findings are known. A *bug* is a guess at the cause: known buckets of one
entry, or new ones that share the blamed pass or, failing that, the operators of their smallest case. Vela and
the serializer are programs, not passes: what is blamed on them is told apart by operators too. A bucket
without a pass joins one with a pass if both show in one graph and have the same operators.

Ranking: new bugs before known ones; inside each, wrong values before broken structure before crashes
(``harness.campaign.summary.rank``), then what is seen most often. A bug's best bucket stands for it. So the first ten
bugs are ten different ones, as far as armdiff can tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from harness.campaign.run_folder import Minimized, Run
from harness.campaign.summary import rank
from harness.evidence.observation import CRASH
from harness.evidence.references import RUNTIMES
from harness.reports.reporting.histograms import Histogram, histograms
from harness.reports.reporting.material import Drawn, JudgedRun, Seen, bug_folder
from harness.reports.reporting.shown import (
    CaseFile,
    Shown,
    error_of,
    read,
    shown_case,
    smallest_first,
    with_finding,
    worst_of,
)
from harness.reports.reporting.words import operator_name
from harness.triage.buckets import any_family
from harness.triage.corpus import Entry
from harness.triage.findings import Finding

PROGRAMS = ("Vela", "serializer", *RUNTIMES.values())
"""Whoever is blamed without being a pass."""
_STATES = ("minimized", "stopped", "lost")


@dataclass(frozen=True)
class Bucket:
    """One bucket of a run.

    :param key: the coarse key regardless of the target family.
    :param entry: name of the corpus entry whose bug it is, empty for a new one; ``title`` is the entry's.
    :param seen: every finding in it, new ones and small graphs first.
    :param like: the corpus entry that it is, or that it resembles.
    :param cases: numbers of the cases that show it; ``graphs`` those of the graphs.
    :param targets: target -> how many cases.
    :param lines: the release lines that it was seen on.
    :param sizes: the error over the hits, one histogram a unit; none if the oracle measures no distance.
    :param shown: the case that stands for it.
    :param worst: the case with the largest error, which may be the shown one.
    :param worst_on: target -> the finding with the largest error there, else the first one.
    :param minimized: what became of its smallest cases, the shown one first.
    :param neighbour: the smallest passing neighbour of the first of these.
    """

    key: str
    oracle: str
    kind: str
    stage: str
    pass_name: str | None
    entry: str
    title: str
    upstream: tuple[str, ...]
    seen: tuple[Seen, ...]
    like: Entry | None
    cases: frozenset[int]
    graphs: frozenset[int]
    targets: Mapping[str, int]
    lines: tuple[str, ...]
    sizes: tuple[Histogram, ...]
    shown: Shown
    worst: Shown
    worst_on: Mapping[str, Finding]
    minimized: tuple[Minimized, ...] = ()
    neighbour: CaseFile | None = None

    @property
    def known(self) -> bool:
        return bool(self.entry)

    @property
    def first(self) -> Finding:
        """The first of its findings: the smallest new one, if one is new."""
        return self.seen[0].finding

    @property
    def resembles(self) -> str:
        """The corpus entry that all of its cases look like, where nothing proves it; empty if one does not."""
        return self.first.entry if self.first.state == "resembling" else ""

    @property
    def state(self) -> str:
        """``known``, ``new``, or ``resembling vela-drops-output``."""
        return "known" if self.known else f"resembling {self.resembles}" if self.resembles else "new"

    @property
    def hits(self) -> int:
        return len(self.cases)

    @property
    def where(self) -> str:
        """Stage and pass, in words."""
        if self.pass_name is None:
            return f"stage {self.stage}, no pass is blamed"
        verb = "raised in" if self.oracle == CRASH else "first wrong after"
        verb = "blamed on" if self.pass_name in PROGRAMS else verb
        return f"stage {self.stage}, {verb} {self.pass_name}"

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of its smallest case."""
        best = next((item for item in self.minimized if item.state != "lost"), None)
        return best.operators if best else self.first.chain

    @property
    def final(self) -> str:
        """The key with the operators of the minimized case, or the coarse one."""
        return self.minimized[0].final if self.minimized else self.key


@dataclass(frozen=True)
class Bug:
    """Buckets that look like one cause, the one that stands for it first.

    :param cause: what they share, in words.
    """

    title: str
    cause: str
    buckets: tuple[Bucket, ...]

    @property
    def first(self) -> Bucket:
        return self.buckets[0]

    @property
    def known(self) -> bool:
        return self.first.known

    @property
    def state(self) -> str:
        return self.first.state

    @property
    def hits(self) -> int:
        """Cases that show one of its buckets."""
        return len(frozenset().union(*(bucket.cases for bucket in self.buckets)))

    @property
    def graphs(self) -> int:
        return len(frozenset().union(*(bucket.graphs for bucket in self.buckets)))

    @property
    def targets(self) -> tuple[str, ...]:
        """Every target that one of its buckets was seen on."""
        return tuple(sorted({target for bucket in self.buckets for target in bucket.targets}))

    @property
    def lines(self) -> tuple[str, ...]:
        """Every release line that one of its buckets was seen on."""
        return tuple(dict.fromkeys(line for bucket in self.buckets for line in bucket.lines))


def buckets_of(judged: JudgedRun, drawn: Drawn) -> list[Bucket]:
    """Every bucket of a run."""
    groups = _grouped(
        judged.seen, lambda item: (any_family(item.finding.bucket), item.entry.name if item.entry else "")
    )
    minimized = _minimized(judged.run.minimized, groups)
    return [_bucket(judged.run, drawn, place[0], groups[place], minimized.get(place, [])) for place in sorted(groups)]


def bugs_of(buckets: Sequence[Bucket]) -> tuple[Bug, ...]:
    """Buckets by cause, ranked."""
    causes = _causes([bucket for bucket in buckets if not bucket.known])
    groups = _grouped(buckets, lambda item: f"corpus entry {item.entry}" if item.known else causes[item.key])
    bugs = []
    for cause, group in groups.items():
        first, *rest = sorted(group, key=_order)
        bugs.append(Bug(first.title, cause, (first, *rest)))
    return tuple(sorted(bugs, key=lambda bug: (bug.known, bug.state != "new", *_order(bug.first))))


def bucket_folder(run: Run, bucket: Bucket) -> Path | None:
    """The folder that was written for a bucket's first minimized case, if it is there."""
    return bug_folder(run, bucket.minimized[0]) if bucket.minimized else None


def _order(bucket: Bucket) -> tuple[int, int, str]:
    return rank(bucket.first), -bucket.hits, bucket.key


_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def _causes(buckets: Sequence[Bucket]) -> dict[str, str]:
    """Bucket -> what it shares with others of one cause."""
    blamed = [bucket for bucket in buckets if _blames_a_pass(bucket)]
    found = {bucket.key: f"the pass {bucket.pass_name}" for bucket in blamed}
    for bucket in buckets:
        if bucket.key in found:
            continue
        program = bucket.pass_name if bucket.pass_name in PROGRAMS else None
        alike = (other for other in blamed if other.operators == bucket.operators and other.graphs & bucket.graphs)
        same = None if program else next(alike, None)
        blame = f", blamed on {program}" if program else ""
        alone = (
            f"the operators {' → '.join(map(operator_name, bucket.operators))}{blame}"
            if bucket.operators
            else f"bucket {bucket.key}"
        )
        found[bucket.key] = found[same.key] if same else alone
    return found


def _blames_a_pass(bucket: Bucket) -> bool:
    """Is one pass blamed, not a program and no wider bracket?"""
    return bucket.pass_name is not None and bucket.pass_name not in PROGRAMS and ".." not in bucket.pass_name


def _minimized(
    items: Sequence[Minimized], groups: Mapping[tuple[str, str], Sequence[Seen]]
) -> dict[tuple[str, str], list[Minimized]]:
    """What was minimized, by the bucket that its origin shows, else by the key alone (the new one first)."""
    found: dict[tuple[str, str], list[Minimized]] = defaultdict(list)
    shows = {place: {PurePosixPath(item.finding.case).name for item in group} for place, group in groups.items()}
    for item in sorted(items, key=lambda item: (_STATES.index(item.state), len(item.operators), item.bucket)):
        places = [place for place in sorted(groups) if place[0] == any_family(item.bucket)]
        own = [place for place in places if PurePosixPath(item.origin).name in shows[place]]
        if places:
            found[(own or places)[0]].append(item)
    return found


def _bucket(run: Run, drawn: Drawn, key: str, group: Sequence[Seen], minimized: Sequence[Minimized]) -> Bucket:
    ordered = smallest_first(drawn, group)
    first, findings = ordered[0], [item.finding for item in ordered]
    by_target = _grouped(findings, lambda item: item.target)
    sizes = histograms(item.finding.measured for item in group)
    unit = sizes[0].unit if sizes else ""
    shown, worst = shown_case(run, minimized, first.finding), worst_of(findings, unit)
    is_worst = error_of(shown.finding, unit) >= error_of(worst, unit)
    minimized = sorted(minimized, key=lambda item: item is not shown.minimized)
    return Bucket(
        key=key,
        oracle=first.finding.oracle,
        kind=first.finding.kind,
        stage=first.finding.stage,
        pass_name=next((item.finding.pass_name for item in group if item.finding.pass_name), None),
        entry=first.entry.name if first.entry else "",
        title=first.entry.status.title if first.entry else _title(first.finding, shown),
        upstream=first.entry.status.reports if first.entry else (),
        seen=tuple(ordered),
        like=first.like,
        cases=frozenset(item.number for item in group),
        graphs=frozenset(item.graph for item in group),
        targets={
            target: sum(item.finding.target == target for item in _each_case(group)) for target in sorted(by_target)
        },
        lines=tuple(dict.fromkeys(item.line for item in group)),
        sizes=sizes,
        shown=shown,
        worst=shown if is_worst else with_finding(run, worst),
        worst_on={target: worst_of(items, unit) for target, items in by_target.items()},
        minimized=tuple(minimized),
        neighbour=read(run, minimized[0].neighbour) if minimized and minimized[0].neighbour else None,
    )


def _each_case(group: Iterable[Seen]) -> Iterable[Seen]:
    """One finding a case."""
    return {item.number: item for item in group}.values()


LONGEST = 5


def _title(finding: Finding, shown: Shown) -> str:
    """What a maintainer would call a new bucket: what is wrong, and in which operators."""
    what = finding.kind
    if finding.oracle == CRASH:
        what = f"{finding.measured.get('type', what)} during {finding.stage}"
    what = f"{what[:1].upper()}{what[1:]}"
    return f"{what} in {_chain(shown.chain)}" if shown.chain else what


def _chain(operators: Sequence[str]) -> str:
    """Operators in order, the middle of a long chain left out."""
    if len(operators) > LONGEST:
        operators = (*operators[:2], "…", *operators[-2:])
    return " → ".join(map(operator_name, operators))
