"""The release table: every corpus bug on every release line, merged from what ``armdiff replay`` found there.

States: ``reproduces``; ``fixed`` (no newer line has it), ``not yet`` (only newer lines have it), ``not
here`` (in between); ``crashes differently`` and ``differs`` (other findings than the recorded ones); ``hidden``
(other bugs stand before it); ``cannot run``; and ``certified`` where a correction's certificate covers it: one of that
line, or of the line that it was made from by exchanging compilers, if what is corrected is no compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.compat.releases import DEFAULT
from harness.evidence.observation import CRASH
from harness.triage.release_environments import OLDEST_FIRST

HAS_IT = ("reproduces", "crashes differently", "differs")
UNTOLD = ("cannot run", "hidden")
"""States that say nothing of whether a line has the bug."""
_SPANS = {"executorch": "ethos-u-vela", "ethos-u-vela": "executorch"}
"""A package whose versions have a bug -> the package that must be the same on the lines that are compared."""


@dataclass(frozen=True)
class Cell:
    """A bug on a line.

    :param state: one of the words above, or empty if the line was not replayed.
    :param what: the finding's message, or why it cannot run.
    :param correction: the certified correction that removes it there.
    :param on: the line of the certificate.
    """

    state: str = ""
    what: str = ""
    correction: str = ""
    on: str = ""

    @property
    def certified(self) -> str:
        """That a correction is certified, and where; empty if none is."""
        return f"certified{self.on and f' on {self.on}'}: {self.correction}" if self.correction else ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.state, self.certified)))


@dataclass(frozen=True)
class Row:
    """A bug: entry name, title, upstream threads, and line -> cell."""

    entry: str
    title: str
    upstream: tuple[str, ...]
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Table:
    """The table.

    :param lines: the lines that were replayed, oldest first.
    :param releases: line -> versions.
    """

    lines: tuple[str, ...]
    releases: Mapping[str, Mapping[str, str]]
    rows: tuple[Row, ...]


def merged(
    replays: Mapping[str, Mapping[str, Any]],
    certified: Iterable[tuple[str, str, str]] = (),
    *,
    covers: Mapping[str, Sequence[str]],
) -> Table:
    """Put replays (line -> JSON of ``replay``) together.

    :param certified: (line, correction, line of its certificate) where that is another one, else empty.
    :param covers: correction -> the entries that it removes.
    """
    lines = tuple(line for line in OLDEST_FIRST if line in replays)
    removed_by = {(entry, line): (name, on) for line, name, on in certified for entry in covers.get(name, ())}
    by_entry: dict[str, dict[str, Mapping[str, Any]]] = {}
    for line in lines:
        for row in replays[line]["entries"]:
            by_entry.setdefault(row["entry"], {})[line] = row
    rows = []
    for entry, found in sorted(by_entry.items(), key=lambda item: (not item[0][:1].isdigit(), item[0])):
        states = {line: state_of(row) for line, row in found.items()}
        first = next(iter(found.values()))
        cells = {
            line: Cell(
                _placed(line, states),
                str(found[line]["what"]),
                *(removed_by.get((entry, line), ()) if states[line] in HAS_IT else ()),
            )
            for line in found
        }
        rows.append(Row(entry, first["title"], tuple(first["upstream"]), cells))
    return Table(lines, {line: replays[line]["releases"] for line in lines}, tuple(rows))


def state_of(row: Mapping[str, Any]) -> str:
    """The state of an entry on one line, without looking at others."""
    if row["outcome"] in UNTOLD:
        return str(row["outcome"])
    if row["outcome"] in ("fixed", "unexpected pass") or not row["findings"]:
        return "fixed"
    if row["outcome"] == "reproduces":
        return "reproduces"
    crashes = any(item["oracle"] == CRASH for item in row["findings"])
    return "crashes differently" if crashes else "differs"


def _placed(line: str, states: Mapping[str, str]) -> str:
    """``fixed`` told apart by where the bug is: before, behind, or on both sides."""
    if states[line] != "fixed":
        return states[line]
    order = [item for item in OLDEST_FIRST if item in states]
    place = order.index(line)
    before = any(states[item] in HAS_IT for item in order[:place])
    after = any(states[item] in HAS_IT for item in order[place + 1 :])
    return "not here" if before and after else "not yet" if after else "fixed"


def spans(row: Row, table: Table) -> dict[str, str]:
    """Per package the first and the last version with a bug: ``{"executorch": "1.4.1 to 1.5.1"}``.

    Only lines count that have the other package's version of the default line (or of the newest one that was tried).
    """
    found = {}
    for package, other in _SPANS.items():
        base = table.releases[DEFAULT if DEFAULT in table.lines else table.lines[-1]].get(other)
        lines = [line for line in table.lines if table.releases[line].get(other) == base]
        having = [line for line in lines if line in row.cells and row.cells[line].state in HAS_IT]
        if versions := list(dict.fromkeys(table.releases[line].get(package, "?") for line in having)):
            found[package] = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    return found


def markdown(table: Table) -> str:
    """The table as Markdown."""
    return "\n".join(_markdown(table)) + "\n"


def _markdown(table: Table) -> Iterator[str]:
    yield f"| bug | {' | '.join(table.lines)} | {' | '.join(_SPANS)} |"
    yield f"|---|{'---|' * (len(table.lines) + len(_SPANS))}"
    for row in table.rows:
        versions = spans(row, table)
        cells = [str(row.cells.get(line, Cell())) for line in table.lines]
        yield f"| {row.entry} | {' | '.join((*cells, *(versions.get(name, '') for name in _SPANS)))} |"
    yield ""
    for line in table.lines:
        yield f"* {line}: {', '.join(f'{name} {version}' for name, version in table.releases[line].items())}"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>armdiff: bugs by release</title><style>
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid #8886; padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { position: sticky; top: 0; background: Canvas; }
td.bug { max-width: 26rem; } td.bug small { opacity: .75; }
.reproduces { background: #d9363e33; } .crashes, .differs { background: #d9822b33; }
.fixed { background: #2e9e4f26; } .cannot, .hidden { background: #8884; } .not { opacity: .6; }
.certified { display: block; font-size: .85em; }
</style></head><body>
<h1>Bugs by release</h1>
<p>{{ table.rows | length }} corpus bugs on {{ table.lines | length }} release lines, oldest first.
Point at a cell for what was seen.</p>
<div class="wide"><table><thead><tr><th>bug</th>{% for line in table.lines %}<th>{{ line }}<br>
<small>executorch {{ table.releases[line].get("executorch", "?") }}<br>
torch {{ table.releases[line].get("torch", "?") }}<br>
Vela {{ table.releases[line].get("ethos-u-vela", "?") }}</small></th>{% endfor %}
<th>first and last version</th></tr></thead>
<tbody>{% for row in table.rows %}<tr><td class="bug"><b>{{ row.entry }}</b><br>{{ row.title }}
{% for url in row.upstream %}<br><small><a href="{{ url }}">{{ url }}</a></small>{% endfor %}</td>
{% for line in table.lines %}{% set cell = row.cells.get(line) %}{% if cell %}
<td class="{{ cell.state.split(' ')[0] }}" title="{{ cell.what[:400] }}">{{ cell.state }}
{% if cell.certified %}<span class="certified">{{ cell.certified }}</span>{% endif %}</td>
{% else %}<td></td>{% endif %}{% endfor %}
<td>{% for name, versions in spans(row, table).items() %}{{ name }} {{ versions }}<br>{% endfor %}</td>
</tr>{% endfor %}</tbody></table></div>
</body></html>
"""


def html(table: Table) -> str:
    """The table as one page that needs nothing else."""
    from jinja2 import Environment

    return Environment(autoescape=True).from_string(_PAGE).render(table=table, spans=spans)
