"""The report as one HTML file that needs nothing else: no network, no script, no fonts of its own.

The template lays out and decides nothing; pictures and charts are made here and handed to it. Everything that
comes from cases or findings is escaped by jinja2 or by ``svg``; a link goes to a web address or to a file of
the run, and a content security policy in the page refuses the rest.
"""

from __future__ import annotations

import itertools
import math
import os
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.reports.reporting import charts
from harness.reports.reporting.buckets import Bucket, Shown, bucket_folder
from harness.reports.reporting.coverage import Grid
from harness.reports.reporting.drawing import distribution_text, needed_for, picture
from harness.reports.reporting.histograms import Histogram
from harness.reports.reporting.material import case_file, replay_command
from harness.reports.reporting.report import Report
from harness.reports.reporting.words import STATES, compact, counted, duration, moment
from harness.triage.findings import Finding, measured_size

LEVELS = 5


def html(report: Report, folder: Path) -> str:
    """The page.

    :param folder: where it will lie: links to files of the run are relative to it.
    """
    run, names = report.judged.run, itertools.count(1)

    def graph(shown: Shown, finding: Finding | None) -> Markup | None:
        if shown.case is None:
            return None
        needed = None
        if finding is not None and not shown.minimized:
            needed = needed_for(shown.case.graph, finding.measured.get("output"))
        return picture(shown.case, f"graph{next(names)}", needed)

    def bars(sizes: Histogram) -> Markup:
        return charts.histogram(sizes, f"sizes{next(names)}")

    def link(file: Path) -> str:
        """A file's address, relative to the page where both lie on one drive."""
        return quote(Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix())

    def bug_link(bucket: Bucket) -> tuple[str, str] | None:
        """Folder name and address of what was written for a bucket, if it is there."""
        place = bucket_folder(run, bucket)
        return (place.name, link(place)) if place else None

    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            run=run,
            graph=graph,
            bars=bars,
            rates=charts.rates(report.timing.rates, report.timing.slice_seconds, report.timing.per_minute, "rates")
            if len(report.timing.rates) > 1
            else None,
            case_link=lambda shown: link(case_file(run, shown.path)) if shown.case is not None else None,
            bug_link=bug_link,
            again=lambda bucket: replay_command(run, bucket.shown.path, bucket.oracle, folder),
            name_of=report.judged.name_of,
            states=STATES,
            started=moment(run.info.started),
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.reports.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "duration": duration,
        "compact": compact,
        "distribution": distribution_text,
        "size": lambda finding: measured_size(finding.measured),
        "counted": counted,
        "web": lambda address: address if address.startswith(("https://", "http://")) else None,
        "level": _level,
        "group": _group,
    }
    return environment


def _level(count: int, grid: Grid) -> int:
    """How dark a cell is: 1 to ``LEVELS``, in proportion to the logarithm of its count."""
    if grid.largest <= 1:
        return LEVELS
    return 1 + round((LEVELS - 1) * math.log(count) / math.log(grid.largest))


def _group(number: int) -> str:
    """A number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\u202f")
