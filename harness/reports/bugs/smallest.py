"""The smallest TOSA program that shows a bug of Vela, beside the module that it was found with.

``harness.tosa.smallest`` makes it of the TOSA files that a bug's script leaves; here it is written and told.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.reports.bugs.script import environment
from harness.tosa.causes import Cause
from harness.tosa.program import encode, lines
from harness.tosa.translating import to_flatbuffer

TOSA, JSON = "smallest.tosa", "smallest.json"
HEADING = "### Smallest TOSA file"


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
