"""``python -m harness.reports.bugs.predicates ENTRY…``: conditions for ``status.toml`` from smallest programs.

A reduction makes everything plain that does not matter. So what is not plain in the smallest program is what the bug
needs: these operators on one line of data flow, batches, a stride, padding in front, an int16. That is written as a
condition (``harness.triage.conditions``), with the siblings of an operator that show the bug in its place. It is one to
begin with: it does not know what nobody tried, and it may ask for what only this face of the bug needs. Each is held
against the conditions that stand in the entry, on the places that the corpus has recorded: how many of the entry's own
it holds at, and at which of other entries.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import click

from harness.case.errors import ArmdiffError
from harness.case.place import INPUT, Place, PlacedOperator
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.reports.bugs.places import read
from harness.reports.bugs.smallest import JSON
from harness.tosa.engine import BLOCK, Plan, Result, run
from harness.tosa.judging import judge
from harness.tosa.program import Program, decode
from harness.tosa.swapping import siblings, swapped
from harness.triage.buckets import kind_of_bucket
from harness.triage.conditions import Condition
from harness.triage.corpus import Entry, entries
from harness.triage.findings import Finding
from harness.triage.known import shown_kind

_PASSED_OVER = ("RESCALE", "IDENTITY", "CAST")
_MORE: Mapping[str, int] = {
    **dict.fromkeys(("batch", "stride", "dilation", "multiplier", "kernel"), 1),
    "pad_before": 0,
    "moved": 0,
}
"""Facts, and what they are where nobody cares."""
_SAID: Mapping[str, int] = {"behind": 1, "ones_only": 0}
"""Facts that matter if they are this: a slice from the front on, and a reshape that moves only ones, are plain."""
_WIDE = 4
_SEEDS = 4
_JUDGE = partial(judge, vetted=False)


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def main(folders: tuple[Path, ...]) -> None:
    """Write conditions from the smallest programs of entries, and hold them against those that stand there."""
    try:
        chosen = [entry for entry in entries(folders) if (entry.folder / JSON).exists()]
    except ArmdiffError as error:
        click.echo(f"armdiff: {error}", err=True)
        sys.exit(error.exit_status)
    everything = {entry.name: read(entry.folder) for entry in entries([folders[0].resolve().parent])}
    agree = count = 0
    for entry in chosen:
        found = finding_of_entry(entry)
        if found is None or found.place is None:
            click.echo(f"# {entry.name}: its smallest program shows nothing")
            continue
        condition = condition_of(found.place, siblings_that_show(entry, found))
        own, missed, others = held_against(condition, entry, everything)
        count, agree = count + 1, agree + (not missed and not others)
        told = ", ".join(others) or "none"
        click.echo(f"# {entry.name}: holds at {own} of its {own + missed} places; of other entries: {told}")
        click.echo(toml(condition))
        sys.stdout.flush()
    click.echo(f"# {agree} of {count} agree with the conditions of their entries at every recorded place")


def finding_of_entry(entry: Entry) -> Finding | None:
    """What an entry's smallest program shows, of the kind that the entry is about."""
    expected = entry.expected
    bucket = "" if expected is None else expected.bucket
    found = [item for result in _judged(entry, [_smallest(entry)] * _SEEDS) for item in result.findings]
    texts = [text.partition(":")[0] for text in entry.status.fingerprints]
    alike = [item for item in found if shown_kind(item) in texts]
    alike.sort(key=lambda item: kind_of_bucket(item.bucket) != kind_of_bucket(bucket) if bucket else False)
    return next(iter(alike), None)


def _smallest(entry: Entry) -> Program:
    return decode((entry.folder / JSON).read_bytes(), str(entry.folder / JSON))


def _judged(entry: Entry, programs: Sequence[Program]) -> Iterator[Result]:
    """Each program on the entry's target, in a block of its own."""
    target = parse_target(read_case(entry.folder).target).name
    if programs:
        plan = Plan(lambda block: (target, [programs[block]]), most=len(programs) * BLOCK, judge=_JUDGE)
        yield from (result for result in run(plan) if result.accelerator)


def siblings_that_show(entry: Entry, finding: Finding) -> Mapping[str, tuple[str, ...]]:
    """Operator of the smallest program -> the others that show the same kind of finding in its place."""
    program = _smallest(entry)
    asked = [
        (step.op, other, swapped(program, place, other))
        for place, step in enumerate(program.operators)
        for other in siblings(step.op)
        if step.op not in _PASSED_OVER
    ]
    found: dict[str, tuple[str, ...]] = {}
    for result in _judged(entry, [item for *_, item in asked]):
        op, other, _ = asked[result.block]
        if any(shown_kind(item) == shown_kind(finding) for item in result.findings):
            found[op] = tuple(dict.fromkeys((*found.get(op, ()), other)))
    return found


def condition_of(place: Place, others: Mapping[str, Sequence[str]] | None = None) -> Condition:
    """What a smallest program's place asks for.

    :param others: operators that may stand in the place of one.
    """
    line = [index for index in _line(place) if place.operators[index].op != INPUT]
    kept = [index for index in line if place.operators[index].op not in _PASSED_OVER] or line
    path = [_element(place.operators[index], index in place.here, others or {}) for index in kept]
    at = (f"issue == {place.facts['issue']}",) if place.facts.get("told") == 0 and "issue" in place.facts else ()
    return Condition(path=tuple(path), at=at)


def _element(operator: PlacedOperator, wrong: bool, others: Mapping[str, Sequence[str]]) -> str:
    terms = ", ".join(_terms(operator))
    names = "|".join((operator.op, *others.get(operator.op, ())))
    return f"{'*' if wrong else ''}{names}" + (f": {terms}" if terms else "")


def _terms(operator: PlacedOperator) -> Iterator[str]:
    facts = operator.facts
    for name, plain in _MORE.items():
        value = facts.get(name)
        if isinstance(value, int) and value > plain:
            yield f"{name} > {plain}"
    yield from (f"{name} == {value}" for name, value in _SAID.items() if facts.get(name) == value)
    for name in ("rank", "out_rank"):
        value = facts.get(name)
        if isinstance(value, int) and value > _WIDE:
            yield f"{name} > {_WIDE}"
            return
    if facts.get("dtype") == "int16":
        yield "dtype == int16"


def _line(place: Place) -> list[int]:
    """The longest way of data through a wrong operator, as indices of operators."""
    return max((_way(place, here) for here in place.here), key=len, default=[])


def _way(place: Place, here: int) -> list[int]:
    def up(index: int) -> list[int]:
        return [*max((up(other) for other in place.operators[index].reads), key=len, default=[]), index]

    def down(index: int) -> list[int]:
        return [index, *max((down(other) for other in place.readers[index]), key=len, default=[])]

    return [*up(here), *down(here)[1:]]


def held_against(
    condition: Condition, entry: Entry, everything: Mapping[str, Sequence[Place]]
) -> tuple[int, int, list[str]]:
    """At how many of an entry's places a condition holds and does not; the other entries at whose places it holds,
    and none of the entry's own conditions does.
    """
    own = [place for place in everything.get(entry.name, ()) if place.graph == condition.graph]
    held = sum(condition.holds(place) for place in own)
    others = [
        name
        for name, places in everything.items()
        if name != entry.name
        and any(condition.holds(place) and not _any_holds(entry.status.conditions, place) for place in places)
    ]
    return held, len(own) - held, others


def _any_holds(conditions: Sequence[Condition], place: Place) -> bool:
    return any(item.holds(place) for item in conditions)


def toml(condition: Condition) -> str:
    """As ``status.toml`` has it."""
    rows = ["[[conditions]]", f"path = {json.dumps(list(condition.path))}"]
    return "\n".join([*rows, *([f"at = {json.dumps(list(condition.at))}"] if condition.at else []), ""])


if __name__ == "__main__":
    main()
