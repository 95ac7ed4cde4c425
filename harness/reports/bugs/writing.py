"""Write the folder of a bug.

What a person may have edited is never overwritten: ``status.toml`` is written once, and ``case.json`` only if the
case comes from elsewhere. ``repro.py`` and ``REPORT.md`` are always made anew.
"""

from __future__ import annotations

import datetime
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.campaign.certify.evidence import Certificate, stored_certificate
from harness.campaign.run_folder import Minimized, cannot_write
from harness.case.building import load_tensors
from harness.case.case import Case
from harness.case.errors import BadInput, CannotRun
from harness.case.reading import file_of, read_case
from harness.compat.releases import installed, release_line
from harness.corrections import corrections, find_correction
from harness.corrections.correction import Correction
from harness.corrections.patch import diff_of
from harness.reports.bugs.executing import executed
from harness.reports.bugs.page import Facts, report_text, title_of
from harness.reports.bugs.script import Script, write_script
from harness.reports.bugs.smallest import keep_smallest
from harness.reports.bugs.verifying import IO_FILE, SCRIPT, TIME_LIMIT, Verified, run_repro
from harness.tosa.reducing import SECONDS
from harness.tosa.smallest import of_vela, smallest_program
from harness.triage.buckets import any_range
from harness.triage.corpus import STATUS, Entry, Status, beside_entry, bugs_of, known_by, read_entry
from harness.triage.findings import Finding

CASE, REPORT = "case.json", "REPORT.md"
MOST_BYTES = 50_000
"""Largest file that is kept beside a script that can make it again."""
_REVIEW = datetime.timedelta(days=180)


def write_report(folder: Path, facts: Facts) -> None:
    """Write ``REPORT.md`` of a bug."""
    (folder / REPORT).write_text(report_text(facts))


def write_bug(
    folder: Path,
    case_file: Path,
    finding: Finding,
    *,
    minimized: Minimized | None = None,
    entry: Entry | None = None,
    corpus: Sequence[Entry] = (),
    root: Path = Path(),
    releases: Mapping[str, str] | None = None,
    line: str | None = None,
    certificates: Path | None = None,
    python: str = sys.executable,
    timeout: float = TIME_LIMIT,
    write: Callable[[Path, Facts], None] = write_report,
) -> str:
    """Write a bug's folder, trying its script in a fresh process.

    :param case_file: the smallest case; its tensors lie beside it.
    :param finding: what was found in it.
    :param minimized: how it was made small; the path of its neighbour counts from ``root``.
    :param entry: the corpus entry of the bug, if the folder is not its own.
    :param corpus: what is known: an entry that knows the finding gives title, cause and releases.
    :param releases: package -> version that it was found with, ``line`` their release line; by default the
        installed ones.
    :param certificates: a folder with certificates of corrections, ``<line>/<correction>.json``.
    :param timeout: seconds that the script may take, and the reduction of a program of Vela's.
    :param write: writes the text about the bug, of all that was found out.
    :returns: what the script did: ``shows``, ``does not show``, ``needs an Ethos-U engine``, or a reason.
    :raises BadInput: the case, or a certificate, is damaged.
    :raises CannotRun: the folder cannot be written.
    """
    case = read_case(case_file)
    versions = installed() if releases is None else releases
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _bring_case(folder, case_file, case)
        entry = entry or _entry(folder, known_by(corpus, finding))
        line = line or release_line()
        status = entry.status if entry else _new_status(folder, finding, line, minimized)
        fixes = _corrections(entry, versions)
        script = write_script(case, finding, status.title, versions, load_tensors(case, folder))
        verified = _try(folder, script, python, timeout)
        smallest = None
        if of_vela(finding):
            smallest = smallest_program(verified.files, finding, bugs_of(corpus), min(SECONDS, timeout))
        if smallest is not None:
            keep_smallest(folder, smallest)
        facts = Facts(
            case=case,
            finding=finding,
            script=script.text,
            verified=replace(verified, files=_kept(verified)),
            status=status,
            releases=versions,
            corrections=fixes,
            certificates=_certificates(fixes, certificates, line, versions),
            patches=_patches(fixes, versions),
            mentioned=_mentioned(status, entry.folder if entry else folder),
            neighbour=_neighbour(minimized, root),
            distinguishes=minimized.distinguishes if minimized else "",
            executed=executed(verified, case.target),
            smallest=smallest,
        )
        write(folder, facts)
    except OSError as error:
        raise cannot_write(folder, error) from None
    return verified.outcome


def _bring_case(folder: Path, case_file: Path, case: Case) -> None:
    source = file_of(case_file)
    if source.resolve() == (folder / CASE).resolve():
        return
    shutil.copyfile(source, folder / CASE)
    if case.tensors is not None:
        shutil.copyfile(source.parent / case.tensors, folder / case.tensors)


def _entry(folder: Path, known: Entry | None) -> Entry | None:
    """The folder's own entry, or the one that knows the finding."""
    return read_entry(folder) if (folder / STATUS).exists() else known


def _new_status(folder: Path, finding: Finding, line: str | None, minimized: Minimized | None) -> Status:
    """Write ``status.toml`` of a bug that nobody has looked at yet; the bucket of the uncut case is its, too."""
    expires = datetime.date.today() + _REVIEW
    title, operators = title_of(finding), tuple(item for item in finding.chain)
    text = (
        f"title = {_quoted(title)}\nupstream = []\nexpires = {expires}\n"
        f"operators = [{', '.join(map(_quoted, operators))}]\n"
    )
    if line is not None:
        text += f'\n[lines.{line}]\nstatus = "reproduces"\nbucket = {_quoted(finding.bucket)}\n'
        if minimized is not None and any_range(minimized.bucket) != any_range(finding.bucket):
            text += f"also = [{_quoted(minimized.bucket)}]\n"
    (folder / STATUS).write_text(text)
    return read_entry(folder).status


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _try(folder: Path, script: Script, python: str, timeout: float) -> Verified:
    """Put the script on disk and run it; its TOSA files are kept if Vela is to blame."""
    for old in (*folder.glob("*.tosa"), *folder.glob(f"*{IO_FILE}")):
        old.unlink()
    (folder / SCRIPT).write_text(script.text)
    script.values.write(folder)
    verified = run_repro(folder, python, timeout)
    for name, data in _kept(verified).items():
        (folder / name).write_bytes(data)
    return verified


def _kept(verified: Verified) -> dict[str, bytes]:
    return {name: data for name, data in verified.files.items() if len(data) <= MOST_BYTES}


def _corrections(entry: Entry | None, versions: Mapping[str, str]) -> list[Correction]:
    if entry is None:
        return []
    release = versions.get("executorch", "")
    certified = [item for item in corrections().values() if entry.name in item.entries]
    beside = [find_correction(word) for word in beside_entry(entry.folder)]
    return [item for item in (*certified, *beside) if item.for_release(release)]


def _certificates(
    fixes: Sequence[Correction], folder: Path | None, line: str | None, versions: Mapping[str, str]
) -> dict[str, Certificate]:
    """Stored certificates by correction. One that was made for an earlier state of its correction says nothing."""
    if folder is None or line is None:
        return {}
    stored = {item.name: (item, stored_certificate(folder, line, item.name)) for item in fixes}
    release = versions.get("executorch", "")
    return {name: made for name, (item, made) in stored.items() if made and made.digest == item.digest(release)}


def _patches(fixes: Sequence[Correction], versions: Mapping[str, str]) -> dict[str, str]:
    """The diff of each correction by itself, if the release is the installed one: line numbers are of its files."""
    if versions.get("executorch") != installed().get("executorch"):
        return {}
    found = {}
    for item in fixes:
        with suppress(CannotRun):  # it was altered: a report without a diff is still one
            found[item.name] = diff_of([item])
    return found


def _mentioned(status: Status, folder: Path) -> dict[str, str]:
    """Titles of the entries beside this one that its note speaks of."""
    names = sorted(file.parent.name for file in folder.parent.glob(f"*/{STATUS}") if file.parent != folder)
    words = set(re.findall(r"[\w-]+", status.note))
    return {name: read_entry(folder.parent / name).status.title for name in names if name in words}


def _neighbour(minimized: Minimized | None, root: Path) -> Case | None:
    if minimized is None or minimized.neighbour is None:
        return None
    try:
        return read_case(root / minimized.neighbour)
    except (BadInput, CannotRun):
        return None  # it was tidied away: a report without it is still one
