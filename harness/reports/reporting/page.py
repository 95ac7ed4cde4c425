"""The report as one HTML file that needs nothing else: no network, no fonts of its own, and no script to be read.

The template lays out and decides nothing; pictures and charts are made here and handed to it. Everything that
comes from cases or findings is escaped by jinja2 or by ``svg``; a link goes to a web address or to a file of
the run or of the corpus. ``report.js`` filters and sorts bugs; without it all are there, in order of harm. A content
security policy in the page lets that one script run, by its digest, and refuses everything else.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.campaign.run_folder import SMALLEST_IS, Run
from harness.case.wording import counted_as
from harness.reports.programs import ADAPTERS, KEPT, netron, programs_in
from harness.reports.reporting import charts
from harness.reports.reporting.buckets import Bucket, Bug, bucket_folder
from harness.reports.reporting.coverage import Grid
from harness.reports.reporting.drawing import distribution_text, needed_for, picture
from harness.reports.reporting.histograms import Histogram
from harness.reports.reporting.material import Seen, bug_folder, case_file, replay_command
from harness.reports.reporting.report import Report
from harness.reports.reporting.shown import CaseFile, Shown
from harness.reports.reporting.words import STATES, compact, duration, moment
from harness.triage.corpus import Entry
from harness.triage.findings import measured_size

LEVELS = 5
MOST_CASES = 100
"""Cases of a bucket that are listed; a night may have thousands."""
MARKS = {"clean": "✓", "known": "◐", "new": "✗", "invalid": "–", "problem": "!", "crash": "†"}
"""What tells outcomes apart beside their colours."""
FIELDS = ("state", "oracle", "target", "pass")
"""What the page's script filters by."""


@dataclass
class _Seeing:
    """What the template asks for: pictures, links and commands.

    :param folder: where the page will lie: links and commands are relative to it.
    """

    run: Run
    folder: Path
    names: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def graph(self, shown: CaseFile) -> Markup | None:
        """A case's picture; what does not lead to the wrong output of a finding is faint."""
        if shown.case is None:
            return None
        output = shown.finding.measured.get("output") if isinstance(shown, Shown) and not shown.minimized else None
        return picture(shown.case, f"graph{next(self.names)}", needed_for(shown.case.graph, output))

    def bars(self, sizes: Histogram) -> Markup:
        return charts.histogram(sizes, f"sizes{next(self.names)}")

    def case_link(self, path: str) -> str:
        return self._link(case_file(self.run, path))

    def again(self, shown: Shown) -> str:
        return replay_command(self.run, shown.path, shown.finding.oracle, self.folder)

    def keep(self, shown: Shown) -> str:
        """The command that writes a case's ``.pte`` and ``.tosa``."""
        return f"{self.again(shown)} --keep {shlex.quote(self._relative(self._home(shown)))}"

    def files(self, shown: Shown) -> list[tuple[str, str, str]]:
        """Name, address and Netron's command of what a case compiles to, as far as it is there."""
        home, file = self._home(shown), case_file(self.run, shown.path)
        return self._opened(programs_in(home, "" if shown.minimized else f"{file.stem}."))

    def entry_files(self, entry: Entry) -> list[tuple[str, str, str]]:
        return self._opened(programs_in(entry.folder))

    def cases(self, bucket: Bucket) -> list[Seen]:
        """One finding for each case of a bucket."""
        return list({item.number: item for item in reversed(bucket.seen)}.values())[::-1][:MOST_CASES]

    def bug_link(self, bucket: Bucket) -> tuple[str, str] | None:
        """Folder name and address of what was written for a bucket, if it is there."""
        place = bucket_folder(self.run, bucket)
        return (place.name, self._link(place)) if place else None

    def entry_link(self, entry: Entry) -> str | None:
        """The address of an entry's report, if it is there."""
        file = entry.folder / "REPORT.md"
        return self._link(file) if os.path.isfile(file) else None

    def _home(self, shown: Shown) -> Path:
        """Where the files of a case are: in its bug's folder, or in the ``files/`` of its run."""
        place = bug_folder(self.run, shown.minimized) if shown.minimized else None
        file = case_file(self.run, shown.path)
        return place or (file.parent if shown.minimized else file.parent.parent / KEPT)

    def _opened(self, files: Iterable[Path]) -> list[tuple[str, str, str]]:
        return [(file.name, self._link(file), netron(self._relative(file))) for file in files]

    def _relative(self, file: Path) -> str:
        return Path(os.path.relpath(file.resolve(), self.folder.resolve())).as_posix()

    def _link(self, file: Path) -> str:
        """A file's address, relative to the page where both lie on one drive."""
        return quote(self._relative(file))


def html(report: Report, folder: Path) -> str:
    """The page.

    :param folder: where it will lie: links to files of the run are relative to it.
    """
    run, timing = report.judged.run, report.timing
    rates = charts.rates(timing.rates, timing.slice_seconds, timing.per_minute, "rates")
    script, digest = _script()
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            run=run,
            see=_Seeing(run, folder),
            rates=rates if len(timing.rates) > 1 else None,
            fields=_fields(report),
            marks=MARKS,
            adapters=ADAPTERS,
            script=script,
            script_digest=digest,
            order_of=_order_of(report),
            name_of=report.judged.name_of,
            states=STATES,
            started=moment(run.info.started),
        )
    )


def _fields(report: Report) -> dict[str, list[str]]:
    """What there is to filter by, as the buckets carry it."""
    found = [
        [(bucket.state.split(" ")[0],), (bucket.oracle,), tuple(bucket.targets), (bucket.pass_name or "none",)]
        for bucket in report.buckets
    ]
    return {name: sorted({value for row in found for value in row[place]}) for place, name in enumerate(FIELDS)}


def _order_of(report: Report) -> Callable[[Bug], Markup]:
    """What a bug is sorted by: its rank, its cases, its largest error (epsilons are no steps)."""
    ranks = {id(bug): rank for rank, bug in enumerate(report.bugs, 1)}

    def order(bug: Bug) -> Markup:
        sizes = [sizes.largest for bucket in bug.buckets for sizes in bucket.sizes if sizes.unit != "epsilons"]
        return Markup('data-rank="{}" data-cases="{}" data-size="{}"').format(
            ranks[id(bug)], bug.hits, f"{max(sizes, default=0.0):g}"
        )

    return order


@cache
def _script() -> tuple[Markup, str]:
    """The page's only script, and the digest by which its content security policy lets it run."""
    text = resources.files("harness.reports.reporting").joinpath("templates/report.js").read_text()
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"sha256-{digest}"


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
        "counted": counted_as,
        "web": lambda address: address if address.startswith(("https://", "http://")) else None,
        "level": _level,
        "group": _group,
    }
    environment.globals["smallest_is"] = SMALLEST_IS
    return environment


def _level(count: int, grid: Grid) -> int:
    """How dark a cell is: 1 to ``LEVELS``, in proportion to the logarithm of its count."""
    if grid.largest <= 1:
        return LEVELS
    return 1 + round((LEVELS - 1) * math.log(count) / math.log(grid.largest))


def _group(number: int) -> str:
    """A number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\u202f")
