"""Shares found after so much time, time to half, and who found what: as text and as JSON.

Marks are those that a user thinks in, minutes on two cores: a course comes to one after twice as much processor time,
however many workers it has. A share of a mark that a course did not come to is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.case.wording import counted_as
from harness.cli.benchmark.rediscovery.contestants import CONTESTANTS
from harness.cli.benchmark.rediscovery.course import Course

CORES = 2
MARKS = {"1 min": 60, "2 min": 120, "5 min": 300, "10 min": 600, "1 h": 3600, "4 h": 14400}
"""Seconds on ``CORES`` cores."""
MOST_NAMED = 20
"""Causes that nobody found, above which they are only counted."""
Key = Mapping[str, Sequence[str]]


def lines(courses: Sequence[Course], key: Key) -> Iterator[str]:
    """For people."""
    for package, entries in key.items():
        rows = [course for course in courses if package in CONTESTANTS[course.contestant].packages]
        if not rows:
            continue
        marks = [name for name, at in MARKS.items() if any(row.processor >= CORES * at for row in rows)]
        yield ""
        yield f"{counted_as(len(entries), 'root cause')} of {package}: share found after so long on {CORES} cores"
        yield f"{'':12}{'seed':>6}" + "".join(f"{name:>8}" for name in marks) + f"{'at last':>9}{'after':>9}{'half':>9}"
        for row in rows:
            told = [_percent(row.share(entries, CORES * MARKS[name])) for name in marks]
            half, found = row.half(entries), sum(name in row.first for name in entries)
            yield (
                f"{row.contestant:12}{row.seed:>6}" + "".join(f"{text:>8}" for text in told)
                + f"{_percent(found / len(entries)):>9}{_minutes(row.processor):>9}"
                + f"{'-' if half is None else _minutes(half):>9}"
            )  # fmt: skip
        yield from _by_whom(rows, entries)
    yield ""
    for name in dict.fromkeys(course.contestant for course in courses):
        yield f"{name}: {CONTESTANTS[name].what}; {_rate([row for row in courses if row.contestant == name], key)}"


def _rate(rows: Sequence[Course], key: Key) -> str:
    """What a contestant came to in all."""
    hours = sum(row.processor for row in rows) / 3600
    known = {name for entries in key.values() for name in entries}
    found = sum(len(known & {*row.first}) for row in rows)
    unproved = {text for row in rows for step in row.steps for text in step.unproved}
    return (
        f"{sum(row.ran for row in rows)} run in {60 * hours:.1f} min of one core, "
        f"{found / len(rows):.1f} causes a course, {counted_as(len(unproved), 'kind')} of findings without a proof"
    )


def _by_whom(rows: Sequence[Course], entries: Sequence[str]) -> Iterator[str]:
    """What only one contestant found, and what none did."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row.contestant, set()).update({*row.first} & {*entries})
    for name, own in found.items():
        others = set().union(*(other for contestant, other in found.items() if contestant != name))
        if len(found) > 1 and own - others:
            yield f"only {name}: {', '.join(sorted(own - others))}"
    missed = sorted({*entries} - set().union(*found.values()))
    if missed:
        yield f"nobody: {', '.join(missed) if len(missed) <= MOST_NAMED else f'{len(missed)} of them'}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _minutes(seconds: float) -> str:
    """Processor time as time on so many cores."""
    return f"{seconds / CORES / 60:.1f} min"


def as_json(courses: Sequence[Course], key: Key) -> dict[str, Any]:
    """For ``--json``."""
    return {
        "cores": CORES,
        "marks": MARKS,
        "key": {package: list(entries) for package, entries in key.items()},
        "courses": [_course(course, key) for course in courses],
    }


def _course(course: Course, key: Key) -> dict[str, Any]:
    own = {package: key[package] for package in CONTESTANTS[course.contestant].packages if package in key}
    return {
        "contestant": course.contestant,
        "seed": course.seed,
        "processor": round(course.processor, 1),
        "ran": course.ran,
        "first": {name: round(seconds, 1) for name, seconds in course.first.items()},
        "unproved": sorted({text for step in course.steps for text in step.unproved}),
        "shares": {
            package: {name: course.share(entries, CORES * at) for name, at in MARKS.items()}
            for package, entries in own.items()
        },
        "half": {package: course.half(entries) for package, entries in own.items()},
    }
