"""The corpus: a folder a bug, with its expected status on every release line.

``status.toml`` beside ``case.json``::

    title = "aten.cat of constants folds with raw codes"
    package = "executorch"          # whose bug it is (the default), or "ethos-u-vela", "torchao", "tosa-tools"
    upstream = ["https://github.com/pytorch/executorch/issues/18971"]  # reports; pull requests about it
    expires = 2027-06-30            # look at the entry again by then
    operators = ["ramp", "cat"]     # what a graph must contain, in order, for a finding to be like this bug;
                                    # "relu|hardtanh" stands for either
    families = ["ethos-u55"]        # optional: target families that have the bug; without it all have
    recipe = "edited=cat"           # optional: a word without which a recipe does not show the bug
    fingerprints = ["values: …"]    # optional: its smallest TOSA programs (harness/tosa/fingerprint.py), a bug of Vela;
                                    # 'python -m harness.reports.bugs.fingerprints FOLDER' writes them

    [[conditions]]                  # what proves a finding to be this bug (harness/triage/conditions.py)
    path = ["RESCALE", "CONCAT: axis == 1"]

    [lines.seed]
    status = "reproduces"           # or "fixed": it does not show there (any more, or yet), or "hidden": only
                                    # the bugs of ``other`` show, and end the case before or stand in its way;
                                    # with a ``bucket``, that is what shows once corrections remove those
    bucket = "v1/numeric/…"         # the coarse bucket on this line
    message = "(-127, 127)"         # optional: a part of the finding's message
    also = ["v1/qparams/…"]         # optional: further buckets in which this very bug shows
    other = ["v1/numeric/…"]        # optional: buckets of other entries' bugs that show here too

A line that was made from another one by a newer or older compiler (``vela52``) needs an expectation only where the bug
depends on the compiler. Everything that is known is written there and nowhere else. An unexpected pass, an unexpected
failure, a failure in another bucket and an expired entry all count.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from harness.case.errors import MALFORMED, BadInput
from harness.compat.releases import LINES, Basis, basis, installed, line_named
from harness.compat.velas import PACKAGE as VELA
from harness.corrections.correction import Correction
from harness.triage.buckets import BUCKET_VERSION, any_family
from harness.triage.conditions import Condition
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified

Package = Literal["executorch", "ethos-u-vela", "torchao", "tosa-tools"]
STATUS = "status.toml"
FRONT_END = ("executorch", "torch", "torchao")
"""The packages that make a TOSA graph of a module."""
STOPS = {"vela": "ethos-u-vela", "leg:tosa-reference": "tosa-tools"}
"""The stages of a bucket that another package than the front end may stop at."""
Bucket = Annotated[str, msgspec.Meta(pattern=f"^{BUCKET_VERSION}(/[^/]+){{2}}/")]
"""A coarse bucket: at least its version, oracle and kind (``harness.triage.buckets``)."""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an entry does on one release line.

    :param also: buckets in which other oracles report the same bug.
    :param other: buckets of other bugs, with entries of their own, that its case shows as well.
    """

    status: Literal["reproduces", "fixed", "hidden"]
    bucket: Bucket | Literal[""] = ""
    message: str = ""
    also: tuple[Bucket, ...] = ()
    other: tuple[Bucket, ...] = ()


class Status(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Contents of ``status.toml``.

    :param package: whose bug it is.
    :param operators: a finding is like this bug only if its graph has them, in this order.
    :param families: the target families (``ethos-u55``) that have the bug; none stands for all.
    :param recipe: a finding is this bug only if its recipe has this word.
    :param conditions: a finding is this bug if one of them holds at its place.
    :param fingerprints: a finding is this bug if its smallest program has one of them.
    :param harmless: why it does no harm to values worth a line of its own; empty if it does.
    :param unavoidable: why no workaround keeps its graphs from what gets them wrong; empty if one does, or might.
    :param cause: the entry with the same root cause that gives it its name: one edit of the source ends both.
    """

    title: str
    package: Package = "executorch"
    upstream: tuple[str, ...] = ()
    expires: datetime.date
    operators: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    recipe: str = ""
    conditions: tuple[Condition, ...] = ()
    fingerprints: tuple[str, ...] = ()
    harmless: str = ""
    unavoidable: str = ""
    cause: str = ""
    note: str = ""
    lines: dict[str, Expectation] = {}

    @property
    def reports(self) -> tuple[str, ...]:
        """The links that report the bug; others are pull requests that introduced it, or mended it later."""
        return tuple(link for link in self.upstream if "/pull/" not in link)

    def expected(self, basis: Basis) -> Expectation | None:
        """The expectation that holds for a set of packages, if one does.

        A bug of the front end depends on all of it, since any part may change the graph; another package's bug on that
        package; and what Vela or the reference model stops at, on that too.
        """
        own = FRONT_END if self.package in FRONT_END else (self.package,)
        buckets = [found.bucket for found in self.lines.values()]
        stops = [package for stage, package in STOPS.items() if any(f"/{stage}/" in bucket for bucket in buckets)]
        candidates = basis.lines((*own, *stops))
        return next((self.lines[line] for line in candidates if line in self.lines), None)


class Entry(msgspec.Struct, frozen=True):
    """One bug of the corpus.

    :param everywhere: the expectation on every release, instead of those of the status.
    :param basis: what it is judged by; None stands for the installed packages.
    :param given: the user says that whatever looks like the bug is known (``--known``).
    :param reduced: nothing but the smallest program proves the bug (``harness.triage.program_entries``).
    """

    folder: Path
    status: Status
    everywhere: Expectation | None = None
    basis: Basis | None = None
    given: bool = False
    reduced: bool = False

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def expected(self) -> Expectation | None:
        """The expectation for the packages that it is judged for, if one holds."""
        return self.everywhere or self.status.expected(self.basis or basis())

    @property
    def bug(self) -> KnownBug | None:
        """What tells the entry's bug, if its release line has it: a bug of Vela's, if a line with the same Vela has it,
        since another front end may only keep the entry's case from coming to it.
        """
        expected, status = self.expected, self.status
        if expected is None or expected.status != "reproduces":
            expected = self._with_the_same_vela()
        if expected is None:
            return None
        return KnownBug(
            entry=self.name,
            given=self.given,
            reduced=self.reduced,
            conditions=status.conditions,
            fingerprints=status.fingerprints,
            corrections=(*proving_corrections(self.name), *beside_entry(self.folder)),
            bucket=expected.bucket,
            also=expected.also,
            message=expected.message,
            operators=status.operators,
            families=status.families,
            recipe=status.recipe,
        )

    def _with_the_same_vela(self) -> Expectation | None:
        judged = self.basis or basis()
        if self.everywhere is not None or self.status.package != VELA or VELA in judged.differs:
            return None
        version = line_named(judged.line).releases[VELA]
        alike = (found for line, found in self.status.lines.items() if line_named(line).releases[VELA] == version)
        return next((found for found in alike if found.status == "reproduces"), None)

    def knows(self, finding: Finding) -> bool:
        """Is this finding proved to be the entry's bug on its release line (on whichever target has it)?"""
        bug = self.bug
        return bug is not None and (found := classified(finding, (bug,))).known and found.entry == self.name

    def resembles(self, finding: Finding) -> bool:
        """Does this finding look like the entry's bug?"""
        bug = self.bug
        return bug is not None and bug.resembles(finding)


def read_entry(folder: Path) -> Entry:
    """Read one entry.

    :raises BadInput: naming the file and the field.
    """
    file = folder / STATUS
    try:
        status = msgspec.toml.decode(file.read_bytes(), type=Status)
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", "give the entry a status.toml") from None
    except (ValueError, *MALFORMED) as error:
        raise BadInput(str(file), str(error), "see harness/triage/corpus.py for the form") from None
    for number, condition in enumerate(status.conditions, 1):
        try:
            condition.check()
        except ValueError as error:
            raise BadInput(
                f"{file}: conditions, number {number}", str(error), "see harness/triage/conditions.py"
            ) from None
    for line in status.lines:
        if line not in LINES:
            raise BadInput(f"{file}: lines.{line}", "is no release line", f"use one of {', '.join(LINES)}")
    return Entry(folder, status)


def entries(paths: Iterable[Path]) -> list[Entry]:
    """Every entry at or below the given paths, by name."""
    found: dict[Path, Entry] = {}
    for path in (path.resolve() if path.name in ("", "..") else path for path in paths):  # an entry has a name
        if not path.exists():
            raise BadInput(str(path), "does not exist", "give corpus folders or entries")
        below = [path] if (path / "status.toml").exists() else sorted(file.parent for file in path.rglob("status.toml"))
        if not below:
            raise BadInput(str(path), "holds no corpus entry", "an entry is a folder with case.json and status.toml")
        for folder in below:
            found[folder.resolve()] = read_entry(folder)
    return list(found.values())


def known_by(corpus: Sequence[Entry], finding: Finding) -> Entry | None:
    """The entry whose bug a finding is proved to be, or None."""
    return next((entry for entry in corpus if entry.knows(finding)), None)


def shown_by(corpus: Sequence[Entry], finding: Finding) -> Entry | None:
    """The entry that a finding's place alone proves it to be, whatever a correction or a reduction has proved.

    Runs that try neither can be compared by it.
    """
    return known_by(corpus, msgspec.structs.replace(finding, state="new", entry="", proof="", fingerprint=""))


def resembled_by(corpus: Sequence[Entry], finding: Finding) -> Entry | None:
    """The entry whose bug a finding is, or looks like, or None."""
    return known_by(corpus, finding) or next((entry for entry in corpus if entry.resembles(finding)), None)


def beside_entry(folder: Path) -> tuple[str, ...]:
    """The correction that lies beside an entry, if there is one: not certified yet, but it takes its bug away."""
    file = folder / "correction.py"
    return (str(file),) if file.exists() else ()


@cache
def proving_corrections(entry: str) -> tuple[str, ...]:
    """The corrections of an entry's bug that the installed release needs and that prove it."""
    from harness.corrections import corrections

    release = installed().get("executorch", "")
    found = (item for item in corrections().values() if entry in item.entries and item.for_release(release))
    return tuple(item.name for item in found if not item.rejects)


def bugs_of(corpus: Iterable[Entry]) -> tuple[KnownBug, ...]:
    """The bugs that entries know on their release lines."""
    return tuple(bug for entry in corpus if (bug := entry.bug) is not None)


def judged_by(corpus: Sequence[Entry], basis: Basis) -> list[Entry]:
    """A corpus judged for the packages of a run that was made elsewhere."""
    return [msgspec.structs.replace(entry, basis=basis) for entry in corpus]


def with_corrections(
    corpus: Sequence[Entry], corrections: Sequence[Correction], beside: Sequence[Entry] = ()
) -> list[Entry]:
    """What to expect of a corpus while corrections apply: the bugs that they remove are gone.

    A corrected entry expects nothing but the bugs of entries that no correction removes. A hidden one that says
    what its bug shows as expects it when nothing stands in its way any more.

    :param beside: other entries, whose bugs may be what stood in the way.
    """
    corrected = {name for correction in corrections for name in correction.entries}
    removed = {
        any_family(bucket)
        for entry in (*corpus, *beside)
        if entry.name in corrected and (expected := entry.expected) is not None
        for bucket in (expected.bucket, *expected.also)
    }

    def changed(entry: Entry) -> Entry:
        expected = entry.expected
        if expected is None:
            return entry
        left = tuple(bucket for bucket in expected.other if any_family(bucket) not in removed)
        renewed = msgspec.structs.replace(expected, other=left)
        if entry.name in corrected:
            renewed = Expectation(status="fixed", other=left)
        elif expected.status == "hidden" and expected.bucket and not left:
            renewed = msgspec.structs.replace(renewed, status="reproduces")
        return entry if renewed == expected else msgspec.structs.replace(entry, everywhere=renewed)

    return [changed(entry) for entry in corpus]


def default_corpus() -> Path | None:
    """The checkout's own corpus, if armdiff runs from a checkout."""
    folder = Path(__file__).resolve().parents[2] / "corpus"
    return folder if folder.is_dir() else None


def default_certificates() -> Path | None:
    """Where the checkout's corpus keeps the certificates of corrections, ``<line>/<correction>.json``."""
    folder = default_corpus()
    return folder / "certificates" if folder else None


def corpus_folders(*, required: bool = False) -> list[Path]:
    """The checkout's corpus, if there is one.

    :raises BadInput: it is required, and armdiff does not run from a checkout.
    """
    folder = default_corpus()
    if folder is None and required:
        raise BadInput("PATHS", "are missing and armdiff does not run from a checkout", "give corpus folders")
    if folder is None or not any(folder.rglob("status.toml")):
        return []
    return [folder]
