"""A smallest program without the operators at its finding's place, which may be bystanders.

The operator that is wrong first need not have any part in the bug: what is around it may overwrite what it reads, or
make it read elsewhere (seen: a SUB ahead of a sum that is transposed twice). A reduction keeps what is at the place, so
its smallest program may be that of a known bug and a bystander. As nothing else of it could go, the finding needs all
of that bug's program, and is the same bug.
"""

from __future__ import annotations

from collections import Counter

from harness.case.place import Place
from harness.tosa.cutting import before, behind, outputs
from harness.tosa.program import Program, problem
from harness.tosa.reducing import ops_of


def without_bystanders(program: Program, place: Place | None) -> list[Program]:
    """What is left without the operators at a place, where each of them is the program's only one of its kind.

    They go from an end, so that no operators come together which were apart.

    :param program: a smallest one.
    """
    ops, there = Counter(ops_of(place)), Counter(program.ops)
    if not ops or any(there[op] != 1 for op in ops):
        return []
    cuts = (cut for each in (behind, before, outputs) for cut in each(program))
    return [cut for cut in cuts if Counter(cut.ops) == there - ops and not problem(cut)]
