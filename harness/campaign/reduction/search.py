"""The search: try cuts, several at a time, keep the first that still shows the bug, until none does.

Kinds of cuts are tried in turn, those that take most away first, each until none of its kind helps. A round in
which no kind helped ends the search: every single cut of what is left was tried, and those after which the case
ran clean are its *neighbours*. The nearest one, and what distinguishes it, goes into the report.

After every few cuts the state is written to a checkpoint, and a search that finds one goes on from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from harness.campaign.reduction.data import data_cuts
from harness.campaign.reduction.harm import Harm
from harness.campaign.reduction.measure import distance, measure
from harness.campaign.reduction.sizes import attribute_cuts, size_cuts
from harness.campaign.reduction.structure import Cut, structural_cuts
from harness.case.case import Case, case_digest
from harness.case.errors import MALFORMED, BadInput

KINDS: tuple[Callable[[Case], Iterator[Cut]], ...] = (structural_cuts, size_cuts, data_cuts, attribute_cuts)

Verdict = Literal["shows", "clean", "other"]
"""The bug shows twice; nothing at all is found; or anything else (another bug, an invalid module, a problem)."""

Judge = Callable[[Sequence[Case]], Sequence[Verdict]]
"""Runs several cases at once."""


class Reduction(msgspec.Struct, kw_only=True):
    """How far a search has come; the contents of a checkpoint.

    :param bucket: what is looked for.
    :param origin: digest of the case that it started from.
    :param harm: what every case on the way has to keep.
    :param tried: verdicts by the digest of the case.
    :param state: ``stopped`` until no cut helps any more.
    :param neighbour: a nearest case that runs clean, and what distinguishes it ("with …").
    """

    bucket: str
    origin: str
    case: Case
    harm: Harm = Harm()
    tried: dict[str, Verdict] = {}
    tries: int = 0
    seconds: float = 0.0
    state: Literal["minimized", "stopped", "lost"] = "stopped"
    neighbour: Case | None = None
    distinguishes: str = ""


def begin(bucket: str, case: Case, checkpoint: Path | None = None, harm: Harm | None = None) -> Reduction:
    """A new search, or the one that the checkpoint is of.

    :param harm: what a new search has to keep. One that goes on keeps to what it began with.

    :raises BadInput: the checkpoint is damaged, or of another search.
    """
    fresh = Reduction(bucket=bucket, origin=case_digest(case), case=case, harm=harm or Harm())
    if checkpoint is None or not checkpoint.exists():
        return fresh
    try:
        found: Reduction = msgspec.json.decode(checkpoint.read_bytes(), type=Reduction)
    except (OSError, *MALFORMED) as error:
        raise BadInput(str(checkpoint), f"is no checkpoint ({error})", "remove it to start again") from None
    if (found.bucket, found.origin) != (fresh.bucket, fresh.origin):
        raise BadInput(str(checkpoint), "is the checkpoint of another case or bucket", "give another --out")
    return found


def reduce_case(
    reduction: Reduction,
    judge: Judge,
    *,
    width: int = 1,
    until: float | None = None,
    checkpoint: Path | None = None,
    report: Callable[[Reduction], None] = lambda _: None,
) -> Reduction:
    """Search on. Returns the same object: minimized, or stopped because the time is over.

    :param judge: says what a case shows.
    :param width: cases that it is given at once.
    :param until: when to stop, as ``time.monotonic`` tells it; a batch that runs is waited for.
    :param report: called after every batch.
    """
    search = _Search(reduction, judge, width, until, checkpoint, report)
    if not reduction.tries and search.verdicts([reduction.case]) != ["shows"]:
        reduction.state = "lost"
    elif reduction.state == "stopped" and search.run():
        reduction.state = "minimized"
    _name_neighbour(reduction)
    search.save()
    return reduction


class _Search:
    def __init__(
        self,
        reduction: Reduction,
        judge: Judge,
        width: int,
        until: float | None,
        checkpoint: Path | None,
        report: Callable[[Reduction], None],
    ) -> None:
        self.reduction, self.judge, self.width = reduction, judge, width
        self.until, self.checkpoint, self.report = until, checkpoint, report

    def run(self) -> bool:
        """Search until no cut helps (True) or the time is over (False)."""
        improved = True
        while improved:
            improved = False
            for kind in KINDS:
                while (found := self._first(kind)) is not None:
                    self.reduction.case, improved = found.case, True
                if self._late():
                    return False
        return True

    def _first(self, kind: Callable[[Case], Iterator[Cut]]) -> Cut | None:
        """The first cut of a kind that still shows the bug, among those that make the case smaller."""
        batch: list[Cut] = []
        for cut in self._fresh(kind):
            batch.append(cut)
            if len(batch) == self.width:
                if (found := self._shown(batch)) is not None or self._late():
                    return found
                batch = []
        return self._shown(batch) if batch else None

    def _fresh(self, kind: Callable[[Case], Iterator[Cut]]) -> Iterator[Cut]:
        current, seen = measure(self.reduction.case), set(self.reduction.tried)
        for cut in kind(self.reduction.case):
            digest = case_digest(cut.case)
            # what showed it before was left for something smaller, or came second in its batch
            if self.reduction.tried.get(digest) == "shows":
                seen.discard(digest)
            if digest not in seen and measure(cut.case) < current:
                seen.add(digest)
                yield cut

    def _shown(self, batch: Sequence[Cut]) -> Cut | None:
        verdicts = self.verdicts([cut.case for cut in batch])
        return next((cut for cut, verdict in zip(batch, verdicts, strict=True) if verdict == "shows"), None)

    def verdicts(self, cases: Sequence[Case]) -> list[Verdict]:
        """What cases show, those that were tried before included; writes the checkpoint."""
        tried, started = self.reduction.tried, time.monotonic()
        fresh = [case for case in cases if case_digest(case) not in tried]
        for case, verdict in zip(fresh, self.judge(fresh) if fresh else (), strict=True):
            tried[case_digest(case)] = verdict
        self.reduction.tries += len(fresh)
        self.reduction.seconds += time.monotonic() - started
        self.save()
        self.report(self.reduction)
        return [tried[case_digest(case)] for case in cases]

    def _late(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def save(self) -> None:
        if self.checkpoint is None:
            return
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.checkpoint.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(self.reduction))
        os.replace(fresh, self.checkpoint)


def _name_neighbour(reduction: Reduction) -> None:
    """Of the single cuts that ran clean, the one that changes least."""
    clean = [cut for cut in _all_cuts(reduction.case) if reduction.tried.get(case_digest(cut.case)) == "clean"]
    if clean:
        nearest = min(clean, key=lambda cut: (distance(reduction.case, cut.case), measure(cut.case)))
        reduction.neighbour, reduction.distinguishes = nearest.case, nearest.what


def _all_cuts(case: Case) -> Iterable[Cut]:
    for kind in KINDS:
        yield from kind(case)
