"""Writes a root cause for its tracker, after its case has been tried again with the installed packages.

``OUT/<tracker>/README.md`` lists a tracker's pages, the most harmful first; ``<entry>.md`` is a page, and ``<entry>/``
holds what is attached to it: the script, the TOSA file, inputs and outputs, patches.
"""

from __future__ import annotations

import datetime
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.campaign.run_folder import cannot_write
from harness.case.building import load_tensors
from harness.corrections.checkout import applied_to, commit_of, in_words
from harness.reports.bugs.of_entry import named
from harness.reports.bugs.page import Facts
from harness.reports.bugs.verifying import DOES_NOT_SHOW
from harness.reports.bugs.writing import write_bug
from harness.reports.upstream.causes import Cause, by_tracker
from harness.reports.upstream.page import body_lines, index, issue_text, patches
from harness.reports.upstream.testing import in_page, regression_test
from harness.triage.findings import Finding
from harness.workers.pool import CaseRunner
from harness.workers.protocol import Task

INDEX = "README.md"


@dataclass(frozen=True)
class Sent:
    """What became of a root cause.

    :param file: its page; None if there is none, for the reason in ``why``.
    :param outcome: what its script did.
    :param lines: of the page, before its script.
    """

    cause: Cause
    file: Path | None = None
    outcome: str = ""
    why: str = ""
    lines: int = 0


def send(
    found: Sequence[Cause],
    out: Path,
    pool: CaseRunner,
    certificates: Path | None,
    source: Path | None = None,
    *,
    tests: bool = False,
    python: str = sys.executable,
) -> Iterator[Sent]:
    """Try the head of each cause again, and write the page of what shows.

    :param certificates: a folder with certificates of corrections, ``<line>/<correction>.json``.
    :param source: a checkout that the patches are made for, instead of the installed release.
    :param tests: also write a test of each fix in upstream's style (``harness.reports.upstream.testing``).
    :param python: the interpreter that runs the scripts.
    :raises CannotRun: a file cannot be written.
    """
    tasks = [Task(case=str(cause.head.folder / "case.json"), confirm=False) for cause in found]
    for cause, result in zip(found, pool.run(tasks), strict=True):
        finding = named(cause.head, result.findings)
        if finding is None:
            yield Sent(cause, why=result.problem or "its case does not show it with the installed packages")
        else:
            yield _written(cause, finding, out, certificates, source, tests, python)


def _written(
    cause: Cause,
    finding: Finding,
    out: Path,
    certificates: Path | None,
    source: Path | None,
    tests: bool,
    python: str,
) -> Sent:
    entry = cause.head
    folder = out / cause.tracker.folder / entry.name
    file = folder.with_name(f"{entry.name}.md")
    text = ""

    def write(folder: Path, facts: Facts) -> None:
        nonlocal text
        applies: dict[str, str] = {}
        if source is not None:
            made, commit = {item.name: applied_to(source, item) for item in facts.corrections}, commit_of(source)
            applies = {name: in_words(item, commit) for name, item in made.items()}
            kept = {name: item.diff or facts.patches.get(name, "") for name, item in made.items()}
            facts = replace(facts, patches=kept)
        fixes = [item for item in facts.corrections if tests and not item.works_around(entry.status.package)]
        for fix in fixes[:1]:
            tensors = load_tensors(facts.case, folder)
            said = in_page(regression_test(folder, facts.case, facts.finding, fix, tensors, python))
            applies[fix.name] = f"{applies.get(fix.name, '')} {said}".strip()
        text = issue_text(cause, facts, datetime.date.today().isoformat(), applies)
        for name, patch in patches(facts).items():
            (folder / name).write_text(patch)

    try:
        shutil.rmtree(folder, ignore_errors=True)
        file.unlink(missing_ok=True)
        outcome = write_bug(
            folder,
            entry.folder / "case.json",
            finding,
            entry=entry,
            certificates=certificates,
            python=python,
            write=write,
        )
        if outcome == DOES_NOT_SHOW:
            return Sent(cause, outcome=outcome, why="its repro.py does not show it in a fresh process")
        file.write_text(text)
    except OSError as error:
        raise cannot_write(folder, error) from None
    return Sent(cause, file, outcome, lines=body_lines(text))


def write_indexes(sent: Sequence[Sent], out: Path, shows: Mapping[str, str]) -> list[Path]:
    """The list of each tracker's pages.

    :param shows: entry -> the versions on which it shows.
    """
    made = []
    files = {item.cause.head.name: item.file for item in sent if item.file is not None}
    for tracker, group in by_tracker([item.cause for item in sent if item.file is not None]).items():
        file = out / tracker.folder / INDEX
        rows = [(cause, files[cause.head.name].name, shows[cause.head.name]) for cause in group]
        try:
            file.write_text("\n".join(index(rows)) + "\n")
        except OSError as error:
            raise cannot_write(file, error) from None
        made.append(file)
    return made
