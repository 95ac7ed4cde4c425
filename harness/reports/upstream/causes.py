"""Root causes of the corpus: which entries are one, whose tracker they go to, and which harm most.

Entries are one root cause if one edit of the source ends them all. Of ExecuTorch's that is told by the corrections that
remove them. A workaround proves nothing of the kind, since it keeps a pattern away from a tool whose source it does not
touch: of Vela's an entry says itself whose cause it has (``Status.cause``), which Velas that were built with one line
mended have shown.

Silent wrong values come first, then what an oracle of less harm saw (``Oracle.rank``); a plain module before a large
one, of Vela's a small TOSA file; last what the corpus calls harmless, and what only a quantized graph edited by hand
shows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.case.case import Case
from harness.case.reading import read_case
from harness.case.recipe import parse_recipe
from harness.compat.velas import PACKAGE
from harness.corrections.correction import Correction
from harness.evidence.observation import oracle_named
from harness.triage.buckets import oracle_of
from harness.triage.corpus import Entry, Package


@dataclass(frozen=True)
class Tracker:
    """Where a package's bugs are filed.

    :param folder: its folder.
    :param where: address of the form.
    :param prefix: how a title begins there.
    """

    folder: str
    where: str
    prefix: str = ""


TRACKERS: dict[Package, Tracker] = {
    "executorch": Tracker("pytorch-executorch", "https://github.com/pytorch/executorch/issues/new", "Arm backend: "),
    "ethos-u-vela": Tracker("vela", "https://gitlab.arm.com/artificial-intelligence/ethos-u/ethos-u-vela/-/issues"),
    "torchao": Tracker("pytorch-ao", "https://github.com/pytorch/ao/issues/new"),
    "tosa-tools": Tracker("tosa-tools", "https://gitlab.arm.com/tosa/tosa-tools/-/issues"),
}
"""Package whose bug it is -> tracker."""


@dataclass(frozen=True)
class Cause:
    """One root cause.

    :param head: the entry that is shown: the worst kind of harm, and of these the smallest module.
    :param others: further entries of the same cause.
    :param told: what the entry that gives the cause its name says of it, if that is not the head.
    """

    head: Entry
    others: tuple[Entry, ...] = ()
    told: str = ""

    @property
    def tracker(self) -> Tracker:
        return TRACKERS[self.head.status.package]


def causes(chosen: Iterable[Entry], corrections: Collection[Correction], naming: Iterable[Entry] = ()) -> list[Cause]:
    """Entries by root cause, the most harmful first.

    :param corrections: those that the installed release needs.
    :param naming: entries that may give a cause its name, chosen or not.
    """
    notes = {entry.name: entry.status.note for entry in naming}
    groups: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for entry in chosen:
        package = entry.status.package
        own = (item for item in corrections if entry.name in item.entries and not item.works_around(package))
        edits = tuple(sorted(item.name for item in own))
        groups[(package, *(edits or (f"entry {shared_name(entry)}",)))].append(entry)
    ordered = (sorted(group, key=_harm) for group in groups.values())
    found = (Cause(first, tuple(rest), notes.get(first.status.cause, "")) for first, *rest in ordered)
    return sorted(found, key=lambda cause: _harm(cause.head))


def shared_name(entry: Entry) -> str:
    """The entry that gives a root cause its name."""
    return entry.status.cause or entry.name


def cause_of(found: Iterable[Cause], programs: Iterable[Entry]) -> dict[str, str]:
    """Entry -> the head of its root cause.

    :param programs: bugs that only TOSA programs show, which no cause has as an entry: with a cause that others have,
        they are seen where those are.
    """
    told: dict[str, str] = {}
    heads: dict[str, str] = {}
    for cause in found:
        for entry in (cause.head, *cause.others):
            told[entry.name] = cause.head.name
            heads.setdefault(shared_name(entry), cause.head.name)
    return told | {entry.name: heads.get(shared_name(entry), entry.name) for entry in programs}


def _harm(entry: Entry) -> tuple[bool, bool, int, int, str]:
    """Sorts by what a bug does, the worst first."""
    case = read_case(entry.folder / "case.json")
    bucket = entry.expected.bucket if entry.expected else ""
    rank = oracle_named(oracle_of(bucket) if bucket else "").rank  # that of no oracle is the last
    edited = bool(parse_recipe(case.recipe).edited)
    return (edited, bool(entry.status.harmless), rank, _size(entry, case), entry.name)


def _size(entry: Entry, case: Case) -> int:
    """What a maintainer has to read: nodes of the module, or bytes of what Vela was given."""
    given = entry.folder.glob("lowered_module_*.tosa") if entry.status.package == PACKAGE else ()
    return min((file.stat().st_size for file in given), default=len(case.graph.nodes))


def by_tracker(found: Sequence[Cause]) -> dict[Tracker, list[Cause]]:
    """The causes of each tracker, in the order of ``TRACKERS``."""
    groups = {tracker: [cause for cause in found if cause.tracker == tracker] for tracker in TRACKERS.values()}
    return {tracker: group for tracker, group in groups.items() if group}
