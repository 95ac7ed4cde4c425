"""What the corpus records of a release line, in the form of a replay there: for the table, without running anything.

Where an entry says nothing of a line that was made from another one by exchanging compilers, what holds for that one is
taken, if the bug does not depend on what was exchanged (``Status.expected``). An entry that says nothing else of a line
has no row there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.compat.releases import Basis, line_named
from harness.triage.corpus import Entry, Expectation


def recorded(corpus: Sequence[Entry], line: str) -> dict[str, Any]:
    """What ``armdiff replay --json`` would hold, had every entry done what its status says of the line."""
    return {"releases": line_named(line).releases, "entries": [*_rows(corpus, line)]}


def _rows(corpus: Sequence[Entry], line: str) -> Iterator[dict[str, Any]]:
    for entry in corpus:
        status = entry.status
        expected = status.expected(Basis(line))
        if expected is None:
            continue
        own = line in status.lines
        yield {
            "entry": entry.name,
            "title": status.title,
            "outcome": expected.status,
            "what": _what(expected) if own else f"not tried: {line_named(line).of}'s, since no such package differs",
            "findings": [{"oracle": bucket.split("/")[1], "bucket": bucket} for bucket in _buckets(expected)],
            "upstream": list(status.upstream),
        }


def _buckets(expected: Expectation) -> tuple[str, ...]:
    if expected.status == "reproduces":
        return (expected.bucket, *expected.also)
    return expected.other if expected.status == "hidden" else ()


def _what(expected: Expectation) -> str:
    return "recorded: " + ("; ".join(_buckets(expected)) or "nothing found")
