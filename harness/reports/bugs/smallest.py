"""The smallest TOSA program that shows a bug of Vela, beside the module that it was found with.

A bug's script leaves the TOSA files that Vela compiled. The Vela engine (``harness.tosa``) looks for the finding in
them in its own way: the first file that shows the same kind of thing on the case's accelerator is reduced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.case.errors import BadInput
from harness.case.target import parse_target
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.evidence.observation import CRASH
from harness.reports.bugs.script import environment
from harness.tosa.causes import Cause, Reducer
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.program import Program, encode, lines
from harness.tosa.reducing import SECONDS
from harness.tosa.translating import from_flatbuffer, to_flatbuffer
from harness.triage.buckets import VELA_STAGE, any_family
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified, shown_kind

TOSA, JSON = "smallest.tosa", "smallest.json"
HEADING = "### Smallest TOSA file"
_SEEDS = 4


def of_vela(finding: Finding) -> bool:
    """Is it Vela's doing: wrong values, a wrong stream, a death?"""
    died = finding.oracle == CRASH and finding.stage == VELA_STAGE
    return finding.pass_name == "Vela" or died


def smallest_program(
    files: Mapping[str, bytes], finding: Finding, bugs: Sequence[KnownBug], seconds: float = SECONDS
) -> Cause | None:
    """Reduce the first of some TOSA files that shows a finding of Vela's.

    :param files: by name; those that end otherwise than ``.tosa`` are passed over.
    :param bugs: what is known.
    :param seconds: for the reduction.
    :returns: None if none shows it without the module around it.
    """
    version = installed().get(PACKAGE, "")
    reducer = Reducer({version: tuple(bugs)}, {version: None}, seconds)
    for name in sorted(name for name in files if name.endswith(".tosa") and name != TOSA):
        try:
            program = from_flatbuffer(files[name])
        except BadInput:
            continue  # control flow, or floats
        target = parse_target(finding.target).name
        plan = Plan(partial(_alone, target, program), most=_SEEDS * BLOCK)
        found = [item for result in run(plan) for item in result.findings]
        alike = [item for item in found if shown_kind(item) == shown_kind(finding)]
        alike.sort(key=lambda item: any_family(item.bucket) != any_family(finding.bucket))
        for item in alike[:1]:
            if (cause := reducer.cause(program, classified(item, bugs))) is not None:
                return cause
    return None


def _alone(accelerator: str, program: Program, block: int) -> tuple[str, Sequence[Program]]:
    """The source of a plan that judges one program under several seeds of inputs."""
    return accelerator, [program]


def keep_smallest(folder: Path, cause: Cause) -> None:
    """Write the program into a bug's folder, as Vela and as ``armdiff vela`` read it."""
    (folder / TOSA).write_bytes(to_flatbuffer(cause.program))
    (folder / JSON).write_bytes(encode(cause.program))


def smallest_facts(cause: Cause | None) -> dict[str, str]:
    """What is told of the smallest program: its operators a line each, where it shows, how it is judged again."""
    if cause is None:
        return {}
    return {
        "lines": "\n".join(lines(cause.program)),
        "families": " and ".join(cause.families),
        "message": cause.finding.message.rstrip(".") + ".",
        "fingerprint": cause.fingerprint,
        "file": TOSA,
        "target": cause.finding.target,
    }


def with_smallest(report: str, cause: Cause) -> str:
    """A report with the section on the smallest program, in place of the one that it has, or before the TOSA file."""
    section = environment().get_template("smallest.jinja").render(smallest=smallest_facts(cause)).strip()
    report = re.sub(rf"^{HEADING}\n.*?(?=^### |\Z)", "", report, flags=re.M | re.S)
    at = report.find("\n### TOSA file")
    at = len(report) if at < 0 else at
    return f"{report[:at].rstrip()}\n\n{section}\n\n{report[at:].lstrip()}".rstrip() + "\n"
