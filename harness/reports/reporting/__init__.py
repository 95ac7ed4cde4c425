"""The report of a run, or of several: verdict first, then bugs, what did not run, coverage and time.

``write_reports`` is what the verb ``report`` and the end of a campaign call. It reads a run as
``harness.campaign.run_folder`` defines it and writes four files that say the same: ``report.html`` for people,
``report.md`` for a CI summary page, ``report.xml`` (JUnit) for whatever collects test results, ``report.json`` for
scripts.

Modules compute (``material``, ``merging``, ``buckets``, ``coverage``, ``timing``, ``compare``, ``not_run``,
collected by ``report``; ``issues``), draw (``layout``, ``drawing``, ``charts``, ``svg``) or lay out (``page``,
``markdown``, ``junit``, ``plain``). None of them imports torch, reads a clock, or needs the packages that the run
was made with.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.campaign.run_folder import Run, cannot_write
from harness.reports.reporting.material import JudgedRun, tallied
from harness.reports.reporting.report import Report, make_report, report_on
from harness.triage.corpus import Entry

__all__ = ["JudgedRun", "Report", "Verdict", "make_report", "report_on", "tallied", "write", "write_reports"]


@dataclass(frozen=True)
class Verdict:
    """What a run comes to.

    :param sentence: what was found in how much, and what did not run.
    :param bugs: the title of each new bug, ranked; ``buckets`` counts their buckets.
    :param known: corpus entries whose bugs showed again.
    :param files: the reports that were written.
    """

    sentence: str
    bugs: tuple[str, ...]
    buckets: int
    known: int
    graphs: int
    cases: int
    files: tuple[Path, ...]

    @property
    def exit_status(self) -> int:
        return 1 if self.bugs else 0


def write_reports(run: Run, corpus: Sequence[Entry], previous: Run | None, folder: Path) -> Verdict:
    """Write the reports of a run into a folder.

    :param corpus: what is known, with the run's corrections applied.
    :param previous: the run to compare with.
    :raises CannotRun: the folder cannot be written.
    """
    return write(make_report(run, corpus, previous), folder)


def write(report: Report, folder: Path) -> Verdict:
    """Write a report's files into a folder.

    :raises CannotRun: the folder cannot be written.
    """
    from harness.reports.reporting.json_data import data
    from harness.reports.reporting.junit import junit
    from harness.reports.reporting.markdown import markdown
    from harness.reports.reporting.page import html

    made = {
        "report.html": html(report, folder).encode(errors="replace"),
        "report.md": markdown(report, folder).encode(errors="replace"),
        "report.json": (json.dumps(data(report, folder), indent=1, allow_nan=False, default=str) + "\n").encode(),
        "report.xml": junit(report, folder),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in made.items():
            fresh = folder / f"{name}.new"
            fresh.write_bytes(content)
            os.replace(fresh, folder / name)  # whoever looks sees the old one or the new one
    except OSError as error:
        raise cannot_write(folder, error) from None
    return Verdict(
        sentence=report.sentence,
        bugs=tuple(bug.title for bug in report.new),
        buckets=sum(len(bug.buckets) for bug in report.new),
        known=len(report.known),
        graphs=report.judged.graphs,
        cases=report.judged.tally.cases,
        files=tuple(folder / name for name in made),
    )
