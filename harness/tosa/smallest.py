"""The smallest TOSA program that shows a finding of a lowering, and the proof that it makes.

The Vela engine looks for the finding in the TOSA files of the delegates in its own way: the first file that shows the
same kind of thing on the case's accelerator is reduced.

``proved_by_reduction`` is the third proof of a campaign: a finding of Vela's is known if its smallest program is an
entry's, whether or not it looked like one where it was found. It counts candidates, not seconds, so that a run stays a
function of what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial

from harness.case.errors import BadInput
from harness.case.target import parse_target
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.evidence.observation import CRASH
from harness.tosa.causes import Cause, Reducer, marked
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.program import Program
from harness.tosa.reducing import SECONDS
from harness.tosa.translating import from_flatbuffer
from harness.triage.buckets import VELA_STAGE, any_family
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified, shown_kind

MOST_CANDIDATES = 400
"""Programs that a proof may judge; half of the reductions take fewer than a hundred."""
_SEEDS = 4
Alike = Callable[[Finding, Finding], bool]


def of_vela(finding: Finding) -> bool:
    """Is it Vela's doing: wrong values, a wrong stream, a death?"""
    died = finding.oracle == CRASH and finding.stage == VELA_STAGE
    return finding.pass_name == "Vela" or died


def smallest_program(
    files: Mapping[str, bytes],
    finding: Finding,
    bugs: Sequence[KnownBug],
    seconds: float = SECONDS,
    *,
    most: int | None = None,
    hasty: bool = False,
    alike: Alike = lambda one, other: shown_kind(one) == shown_kind(other),
) -> Cause | None:
    """Reduce the first of some TOSA files that shows a finding of Vela's.

    :param files: by name; those that end otherwise than ``.tosa`` are passed over.
    :param bugs: what is known.
    :param seconds: processor time for the reduction; ``most``: candidates.
    :param hasty: it need not be the smallest, if a condition proves a larger one.
    :param alike: is what a file shows the finding?
    :returns: None if none shows it without the module around it.
    """
    version = installed().get(PACKAGE, "")
    reducer = Reducer({version: tuple(bugs)}, {version: None}, seconds, most=most, hasty=hasty)
    for name in sorted(name for name in files if name.endswith(".tosa")):
        try:
            program = from_flatbuffer(files[name])
        except BadInput:
            continue  # control flow, or floats
        target = parse_target(finding.target).name
        plan = Plan(partial(_alone, target, program), most=_SEEDS * BLOCK)
        with closing(run(plan)) as results:
            found = (item for result in results for item in result.findings)
            shown = _likest((item for item in found if alike(item, finding)), finding)
        if shown is not None and (cause := reducer.cause(program, classified(shown, bugs))) is not None:
            return cause
    return None


def _likest(found: Iterable[Finding], finding: Finding) -> Finding | None:
    """The first in the finding's bucket, behind which nothing is judged; else the first of all."""
    first = None
    for item in found:
        if any_family(item.bucket) == any_family(finding.bucket):
            return item
        first = item if first is None else first
    return first


def _alone(accelerator: str, program: Program, block: int) -> tuple[str, Sequence[Program]]:
    """The source of a plan that judges one program under several seeds of inputs."""
    return accelerator, [program]


def proved_by_reduction(finding: Finding, files: Mapping[str, bytes], bugs: Sequence[KnownBug]) -> Finding:
    """The finding as known, if one of the files shows it and its smallest program is an entry's.

    It is shown in the same bucket, or, where it is not certain which step is wrong first, at one that may be.

    :param files: what Vela compiled, by name.
    """
    if finding.known or not of_vela(finding) or not any(bug.fingerprints for bug in bugs):
        return finding
    cause = smallest_program(files, finding, bugs, most=MOST_CANDIDATES, hasty=True, alike=_is_the_same)
    return finding if cause is None or not cause.ended else marked(finding, cause)


def _is_the_same(engine: Finding, finding: Finding) -> bool:
    seen, told = any_family(engine.bucket), any_family(finding.bucket)
    if seen == told:
        return True
    if "earliest" not in finding.measured or "operation" not in engine.measured:
        return False
    first, step, last = finding.measured["earliest"], engine.measured["operation"], finding.measured["latest"]
    between = int(first) <= int(step) <= int(last)
    return between and seen.rpartition("/")[0] == told.rpartition("/")[0]
