"""A run against the one before it: which buckets are new, gone or still there.

Buckets are compared regardless of the target family, so that a target that was added does not make every bug
new. What is gone is fixed only if the later run could have seen it: ``caveats`` says where the runs differ in
what they drew, on what, and with which packages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.reports.reporting.material import JudgedRun
from harness.triage.buckets import any_family


@dataclass(frozen=True)
class Change:
    """One bucket in both runs.

    :param hits: findings in this run; ``before`` in the previous one.
    :param known: does the corpus know all of it (in the run that has it)?
    :param example: message of the first finding.
    """

    key: str
    hits: int
    before: int
    known: bool
    example: str


@dataclass(frozen=True)
class Comparison:
    """This run and the previous one.

    :param releases: package -> (previous version, version), where they differ.
    :param caveats: why a bucket may be gone or new without a change upstream, a sentence each.
    """

    folder: str
    graphs: int
    cases: int
    new: tuple[Change, ...]
    gone: tuple[Change, ...]
    still: tuple[Change, ...]
    releases: Mapping[str, tuple[str, str]]
    caveats: tuple[str, ...]


def comparison(judged: JudgedRun, previous: JudgedRun) -> Comparison:
    """Compare a run with the previous one."""
    now, before = _hits(judged), _hits(previous)
    known, examples = _known(judged), _examples(previous) | _examples(judged)
    for key, value in _known(previous).items():
        known.setdefault(key, value)
    rows = [Change(key, now[key], before[key], known[key], examples[key]) for key in sorted(now | before)]
    rows.sort(key=lambda row: (row.known, -max(row.hits, row.before), row.key))
    ours, theirs = judged.run.info.releases, previous.run.info.releases
    return Comparison(
        folder=str(previous.run.folder),
        graphs=previous.graphs,
        cases=previous.tally.cases,
        new=tuple(row for row in rows if not row.before),
        gone=tuple(row for row in rows if not row.hits),
        still=tuple(row for row in rows if row.hits and row.before),
        releases={
            name: (theirs.get(name, "none"), ours.get(name, "none"))
            for name in sorted({*ours, *theirs})
            if ours.get(name) != theirs.get(name)
        },
        caveats=tuple(_caveats(judged, previous)),
    )


def _hits(judged: JudgedRun) -> Counter[str]:
    return Counter(any_family(item.finding.bucket) for item in judged.seen)


def _known(judged: JudgedRun) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for item in judged.seen:
        key = any_family(item.finding.bucket)
        found[key] = found.get(key, True) and item.finding.known
    return found


def _examples(judged: JudgedRun) -> dict[str, str]:
    return {any_family(item.finding.bucket): item.finding.message for item in reversed(judged.seen)}


def _caveats(judged: JudgedRun, previous: JudgedRun) -> Iterator[str]:
    asked, former = judged.run.info.asked, previous.run.info.asked
    if (asked.seed, asked.shard) != (former.seed, former.shard):
        yield (
            f"The runs drew other graphs (seed {former.seed}, shard {former.shard_name} before; seed {asked.seed}, "
            f"shard {asked.shard_name} now): a bucket that is gone may only not have been drawn."
        )
    elif previous.graphs != judged.graphs:
        yield f"The previous run has {previous.graphs} graphs and this one {judged.graphs}: the longer one saw more."
    if set(asked.targets) != set(former.targets):
        yield f"The targets differ: {', '.join(former.targets)} before, {', '.join(asked.targets)} now."
    if set(asked.corrections) != set(former.corrections):
        yield (
            f"The corrections differ: {', '.join(former.corrections) or 'none'} before, "
            f"{', '.join(asked.corrections) or 'none'} now."
        )
    if previous.run.info.state != "done":
        yield "The previous run did not end by itself."
