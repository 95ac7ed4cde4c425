"""What a release changed: of each corpus bug on two lines of the table, is it fixed, new, or still there?

A bug that the later line has and the earlier one has not *broke*; if any line before the earlier one had it, it
*came back*. Where one of the two lines says nothing (it was not replayed there, it cannot run there, or another bug
comes first), nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.triage.release_environments import OLDEST_FIRST
from harness.triage.release_table import HAS_IT, UNTOLD, Row, Table

FIXED, BROKE, BACK, LEFT, UNKNOWN = "fixed", "broke", "came back", "left", "cannot be told"
ORDER = (BROKE, BACK, FIXED, UNKNOWN, LEFT)
"""What a maintainer wants to hear first."""


@dataclass(frozen=True)
class Change:
    """What became of one bug.

    :param kind: one of ``ORDER``.
    :param why: of what cannot be told.
    """

    entry: str
    title: str
    kind: str
    upstream: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Changes:
    """What the line ``until`` changed since the line ``since``."""

    since: str
    until: str
    bugs: tuple[Change, ...]

    def of(self, kind: str) -> tuple[Change, ...]:
        """The bugs of one kind."""
        return tuple(bug for bug in self.bugs if bug.kind == kind)


def changes(table: Table, since: str, until: str = "") -> Changes:
    """Compare two lines of a table.

    :param until: the later line; by default the newest one of the table.
    :raises BadInput: a line is not in the table, or is no older than the other.
    """
    later = until or table.lines[-1]
    for line in (since, later):
        if line not in table.lines:
            raise BadInput(f"--since {since}", f"{line} was not replayed", f"add --line {line}, or its JSON")
    if OLDEST_FIRST.index(since) >= OLDEST_FIRST.index(later):
        raise BadInput(f"--since {since}", f"is not older than {later}", "name an older line")
    return Changes(since, later, tuple(_change(row, table, since, later) for row in table.rows))


def _change(row: Row, table: Table, since: str, until: str) -> Change:
    for line in (since, until):
        cell = row.cells.get(line)
        if cell is None or cell.state in UNTOLD:
            why = f"{line}: {cell.state} ({cell.what})" if cell else f"{line}: was not replayed"
            return Change(row.entry, row.title, UNKNOWN, row.upstream, why)
    had, has = (row.cells[line].state in HAS_IT for line in (since, until))
    kind = LEFT if had and has else FIXED if had else BROKE if has else ""
    if kind == BROKE:
        before = table.lines[: table.lines.index(since)]
        if any(line in row.cells and row.cells[line].state in HAS_IT for line in before):
            kind = BACK
    return Change(row.entry, row.title, kind or "absent", row.upstream)


def told(found: Changes, table: Table) -> Iterator[str]:
    """Markdown: what broke, what came back, what is fixed, what cannot be told; how many are left."""
    names = [
        f"{line} ({', '.join(f'{name} {version}' for name, version in table.releases[line].items())})"
        for line in (found.since, found.until)
    ]
    yield f"## Since {names[0]}"
    yield ""
    yield f"Now {names[1]}."
    for kind in ORDER:
        bugs = found.of(kind)
        if not bugs or kind == LEFT:
            continue
        yield ""
        yield f"### {counted_as(len(bugs), 'bug')} {kind}"
        yield ""
        for bug in bugs:
            links = "".join(f", {link}" for link in bug.upstream)
            yield f"* `{bug.entry}`: {bug.title}{links}{f' ({bug.why})' if bug.why else ''}"
    yield ""
    yield f"{counted_as(len(found.of(LEFT)), 'bug')} left."
