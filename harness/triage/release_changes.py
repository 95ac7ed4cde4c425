"""What a release changed: of each corpus bug in two replays, is it fixed, new, or still there?

The replays are of two lines of the table, or of one line that follows upstream (``newest``), then and now. A bug
that the later one has and the earlier one has not *broke*; if a line before the earlier one had it, it *came back*.
Where one of the two says nothing (it was not replayed, it cannot run, or another bug comes first), nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.case.wording import counted_as
from harness.triage.release_table import HAS_IT, UNTOLD, state_of

FIXED, BROKE, BACK, LEFT, UNKNOWN = "fixed", "broke", "came back", "left", "cannot be told"
ORDER = (BROKE, BACK, FIXED, UNKNOWN, LEFT)
"""What a maintainer wants to hear first."""
_LONGEST = 300
"""Characters of what was seen."""
Replay = Mapping[str, Any]
"""JSON of ``armdiff replay``."""


@dataclass(frozen=True)
class Change:
    """What became of one bug.

    :param kind: one of ``ORDER``.
    :param what: what was seen now, or of what cannot be told, why.
    """

    entry: str
    title: str
    kind: str
    what: str
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What changed between two replays.

    :param before: package -> version then; ``now``: those of now.
    """

    before: Mapping[str, str]
    now: Mapping[str, str]
    bugs: tuple[Change, ...]

    def of(self, kind: str) -> tuple[Change, ...]:
        """The bugs of one kind."""
        return tuple(bug for bug in self.bugs if bug.kind == kind)


def changes(before: Replay, now: Replay, earlier: Iterable[Replay] = ()) -> Changes:
    """Compare two replays.

    :param earlier: replays of older lines.
    """
    old, new = _rows(before), _rows(now)
    had = {name for replay in earlier for name, row in _rows(replay).items() if state_of(row) in HAS_IT}
    bugs = (_change(name, old.get(name), new.get(name), name in had) for name in sorted(old.keys() | new.keys()))
    return Changes(before["releases"], now["releases"], tuple(bug for bug in bugs if bug is not None))


def _rows(replay: Replay) -> dict[str, Mapping[str, Any]]:
    return {row["entry"]: row for row in replay["entries"]}


def _change(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, had: bool) -> Change | None:
    known = new or old
    assert known is not None
    words = (known["title"], tuple(known["upstream"]))
    for row, when in ((old, "then"), (new, "now")):
        if row is None or state_of(row) in UNTOLD:
            why = f"{when} {state_of(row)}: {row['what']}" if row else f"was not replayed {when}"
            return Change(name, words[0], UNKNOWN, why, words[1])
    assert old is not None
    assert new is not None
    before, after = state_of(old) in HAS_IT, state_of(new) in HAS_IT
    if not before and not after:
        return None
    kind = (LEFT if after else FIXED) if before else BACK if had else BROKE
    return Change(name, words[0], kind, str(new["what"]), words[1])


def told(found: Changes) -> Iterator[str]:
    """Markdown: which packages changed, what broke, came back, is fixed or cannot be told; how many are left."""
    names = sorted(found.before.keys() | found.now.keys())
    moved = [name for name in names if found.before.get(name) != found.now.get(name)]
    packages = ", ".join(f"{name} {found.before.get(name, '-')} to {found.now.get(name, '-')}" for name in moved)
    yield f"## {packages or 'The same packages'}"
    for kind in ORDER:
        bugs = found.of(kind)
        if not bugs or kind == LEFT:
            continue
        yield ""
        yield f"### {counted_as(len(bugs), 'bug')} {kind}"
        yield ""
        for bug in bugs:
            links = "".join(f", {link}" for link in bug.upstream)
            yield f"* `{bug.entry}`: {bug.title}{links}{'' if kind == FIXED else f': {bug.what[:_LONGEST]}'}"
    yield ""
    yield f"{counted_as(len(found.of(LEFT)), 'bug')} left."
