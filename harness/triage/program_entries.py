"""Bugs of Vela that only TOSA programs show, which ExecuTorch does not make: ``corpus/programs``, a folder a bug.

``bug.toml`` beside ``program.tosa`` (and REPORT.md, repro.py, io.npz, as ``armdiff vela`` writes them)::

    title = "Vela shifts one operand of an ADD by 19 where both have small factors (Ethos-U55, U65)"
    families = ["ethos-u55", "ethos-u65"]
    bucket = "v1/numeric/…"
    also = ["v1/crash/…"]           # optional: further buckets in which this very bug shows
    note = "…"                      # the cause, in Vela's source
    cause = "vela-…"                # optional: the entry with the same root cause that gives it its name
    upstream = []                   # reports
    fingerprints = ["values: …"]    # its smallest programs

    [velas]                         # versions that have it, and those that do not
    "5.0.0" = false
    "5.1.0" = true

``[[conditions]]`` as in ``status.toml``. A replay needs a case, so they are no entries for it. ``armdiff vela`` knows
them as any other; elsewhere a finding is theirs if its smallest program is, since nobody looked for them in graphs.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import msgspec

from harness.case.errors import MALFORMED, BadInput
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.triage.conditions import Condition
from harness.triage.corpus import Entry, Expectation, Status, default_corpus

PROGRAMS, BUG = "programs", "bug.toml"


class ProgramBug(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Contents of ``bug.toml``.

    :param velas: version -> does it have the bug?
    """

    title: str
    bucket: str
    velas: dict[str, bool]
    also: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    cause: str = ""
    note: str = ""

    def in_version(self, version: str) -> bool:
        """Does a version have it? One that is not listed is taken for the one before it."""
        before = [other for other in self.velas if by_age(other) <= by_age(version)]
        return self.velas[max(before, key=by_age)] if before else self.velas[min(self.velas, key=by_age)]


def by_age(version: str) -> tuple[int, ...]:
    """Older versions come first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def read_program_bug(folder: Path) -> ProgramBug:
    """Read one.

    :raises BadInput: naming the file and the field.
    """
    file = folder / BUG
    try:
        return msgspec.toml.decode(file.read_bytes(), type=ProgramBug)
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", "give the folder a bug.toml") from None
    except (ValueError, *MALFORMED) as error:
        raise BadInput(str(file), str(error), "see harness/triage/program_entries.py for the form") from None


def program_folders() -> list[Path]:
    """The checkout's folders of such bugs; none if armdiff does not run from a checkout."""
    corpus = default_corpus()
    return [] if corpus is None else sorted(file.parent for file in (corpus / PROGRAMS).glob(f"*/{BUG}"))


def program_entries(version: str | None = None, *, reduced: bool = False) -> list[Entry]:
    """The bugs as entries, with what is expected of a version of Vela.

    :param version: None: the installed one.
    :param reduced: nothing but a smallest program proves them.
    """
    told = installed().get(PACKAGE, "") if version is None else version
    found = [_entry(folder, read_program_bug(folder), told) for folder in program_folders()]
    return [msgspec.structs.replace(entry, reduced=reduced) for entry in found]


def _entry(folder: Path, bug: ProgramBug, version: str) -> Entry:
    status = Status(
        title=bug.title,
        package="ethos-u-vela",
        upstream=bug.upstream,
        expires=datetime.date.max,
        families=bug.families,
        conditions=bug.conditions,
        fingerprints=bug.fingerprints,
        cause=bug.cause,
        note=bug.note,
    )
    has_it = bug.in_version(version)
    expected = Expectation(status="reproduces" if has_it else "fixed", bucket=bug.bucket, also=bug.also)
    return Entry(folder, status, expected)
