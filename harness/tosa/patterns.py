"""What the corpus's patterns say of a smallest program, and of the one that it was reduced from.

A pattern on all of a program (``whole``) holds of smallest programs only. A cut may bring operators together that were
apart, so such a pattern proves a smallest program only if the program in front of the cuts had its operators in that
order, with anything between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from harness.artifacts.tosa import decode_tosa
from harness.case.place import Fact, Place
from harness.evidence.inspection.surroundings import tosa_place
from harness.tosa.program import Program
from harness.tosa.translating import to_flatbuffer
from harness.triage.conditions import ANY, Condition
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified, is_all_of_smallest


def whole_place(program: Program, facts: Mapping[str, Fact] | None = None) -> Place | None:
    """All of a program as the place."""
    block = decode_tosa(to_flatbuffer(program)).main
    return tosa_place(block, [name for step in program.operators for name in step.outputs], facts or {})


def classified_as_smallest(finding: Finding, program: Program, bugs: Sequence[KnownBug]) -> Finding:
    """The finding in its state; where its place is a part of the program only, patterns on all of it are asked, too."""
    found = classified(finding, bugs)
    if found.known or finding.place is None or is_all_of_smallest(finding):
        return found
    patterns = [
        msgspec.structs.replace(bug, conditions=tuple(item for item in bug.conditions if item.whole), fingerprints=())
        for bug in bugs
    ]
    whole = msgspec.structs.replace(finding, place=whole_place(program, finding.place.facts))
    told = classified(whole, patterns)
    return msgspec.structs.replace(told, place=finding.place) if told.known else found


def anywhere(condition: Condition) -> Condition:
    """The pattern alone; of what speaks of smallest programs with anything between its operators."""
    if not condition.whole:
        return msgspec.structs.replace(condition, at=())
    return msgspec.structs.replace(condition, at=(), whole=False, through=ANY)


def without_others(bugs: Sequence[KnownBug], there: set[str]) -> list[KnownBug]:
    """What may prove a reduced finding: no pattern on smallest programs that the program did not have itself."""
    return [
        bug
        if bug.entry in there
        else msgspec.structs.replace(bug, conditions=tuple(item for item in bug.conditions if not item.whole))
        for bug in bugs
    ]


def entries_there(program: Program, bugs: Sequence[KnownBug]) -> set[str]:
    """Entries whose pattern is somewhere in a program: a reduction may end at them.

    Cuts bring operators together that were apart: what a candidate has of a known bug without the program having it
    was made by a cut.
    """
    place = whole_place(program)
    patterns = [(bug.entry, anywhere(item)) for bug in bugs for item in bug.conditions if item.path]
    return {entry for entry, pattern in patterns if place is not None and pattern.holds(place)}
