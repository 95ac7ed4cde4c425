"""Masking: how often would a bug that nobody knows be taken for a known one?

A case is lowered, and an imaginary bug is put at every place where one could show: at every operator of every
delegate's TOSA graph for Vela, and in every bucket of the corpus for what passes and the quantizer do. For each family
of buckets it is counted at how many places an entry's condition holds, so that the finding would be called known, and
how many findings resemble an entry, which is what called them known before findings had places.

The imaginary bug shows in each way that a condition asks for: wrong values in all elements, in some, in some with
bytes that nothing wrote; a hazard of a BLOCKDEP, of a wait; a repetition; and so on. Corrections are not applied: a bug
that is not theirs stays.

Imports nothing of torch; the lowering is the caller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.case.case import Case
from harness.case.chains import operator_chain
from harness.case.place import INPUT, Fact, Place
from harness.case.target import parse_target
from harness.evidence.inspection.surroundings import CONSTANTS, case_place, seen_place, tosa_place
from harness.evidence.observation import CRASH, DelegateRecord
from harness.evidence.references import RUNTIME, RUNTIMES
from harness.triage.buckets import BUCKET_VERSION, kind_of_bucket
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified

VELA = "Vela"
_WRONG, _DROPPED, _LOST = "numeric/differs-from-the-TOSA-reference", "buffers/input-count", "buffers/output-count"
WAYS: Mapping[str, tuple[Mapping[str, Fact], ...]] = {
    _WRONG: (
        {"share": 1.0, "certain": 1, "repair": "values", "unwritten": 0},
        {"share": 0.5, "certain": 1, "repair": "values", "unwritten": 0},
        {"share": 0.5, "certain": 1, "repair": "values", "unwritten": 1},
    ),
    "stream/hazard": (
        {"issue": "hazard", "conflict": "overtakes", "blockdep": 1, "safe": 0, "kind": "POOL", "after": "POOL"},
        {"issue": "hazard", "conflict": "overtakes", "blockdep": 1, "safe": 0, "kind": "POOL", "after": "ELEMENTWISE"},
        {"issue": "hazard", "conflict": "writes-what-it-reads", "kind": "DMA_START", "missing": "KERNEL_WAIT"},
        {"issue": "hazard", "conflict": "writes-what-it-reads", "missing": "DMA_WAIT", "theirs": "INDEX"},
        {"issue": "hazard", "conflict": "reads-what-it-writes", "missing": "DMA_WAIT", "after": "DMA_START"},
    ),
    _LOST: ({},),
    _DROPPED: ({},),
    "stream/unwritten-output": ({"issue": "unwritten-output", "unwritten": 1},),
    **{
        f"stream/{kind}": ({"issue": kind},)
        for kind in (
            *("duplicate", "out-of-bounds", "register-limit", "unwritten-read"),
            *("weight-padding", "scale-padding", "stream-length"),
        )
    },
}
"""Kind of finding -> the ways in which an imaginary bug of Vela shows at a place: all that conditions ask for."""


class Counts(msgspec.Struct, frozen=True):
    """Of one family of buckets in one case: imaginary findings, those called known, those that resemble an entry.

    :param entries: how many each entry is taken for.
    """

    places: int = 0
    known: int = 0
    alike: int = 0
    entries: dict[str, int] = {}


def masked(case: Case, delegates: Sequence[DelegateRecord], bugs: Sequence[KnownBug]) -> dict[str, Counts]:
    """Counts by family: ``numeric/CONV2D``, ``stream/hazard``, ``crash vela``, a kind with a pass's name.

    :param delegates: of the case's lowering.
    """
    places, alike = Counter[str](), Counter[str]()
    entries: dict[str, Counter[str]] = {}
    for family, finding in _imagined(case, delegates, bugs):
        places[family] += 1
        taken = classified(finding, bugs)
        entries.setdefault(family, Counter()).update([taken.entry] if taken.known else [])
        alike[family] += any(bug.resembles(finding) for bug in bugs)
    return {
        family: Counts(count, entries[family].total(), alike[family], dict(entries[family]))
        for family, count in places.items()
    }


def _imagined(
    case: Case, delegates: Sequence[DelegateRecord], bugs: Sequence[KnownBug]
) -> Iterator[tuple[str, Finding]]:
    if any(record.payload != record.tosa for record in delegates if record.tosa is not None):
        for record in delegates:
            if record.tosa is not None:
                yield from vela_findings(case, decode_tosa(record.tosa).main)
    own = parse_target(case.target).family
    for bucket in dict.fromkeys(bug.bucket for bug in bugs):
        words = bucket.split("/")
        if words[4] == VELA:
            continue
        family = f"{kind_of_bucket(bucket)} {words[4]}" if words[1] != CRASH else f"crash {words[3]}"
        if words[1] == CRASH:
            place = case_place(case.graph)
        elif words[4] == RUNTIMES[RUNTIME].replace(" ", "-"):
            place = case_place(case.graph, {"steps": 9.0, "leg": RUNTIME})
        else:
            place = seen_place({"steps": 9.0, "constant": 0})
        yield family, _finding(case, "/".join((*words[:5], own, *words[6:])), place)


def vela_findings(case: Case, block: TosaBlock) -> Iterator[tuple[str, Finding]]:
    """An imaginary finding for each operator of a delegate, kind and way, with its family."""
    family = parse_target(case.target).family
    made = [(item.op, item.outputs[:1]) for item in block.operators if item.op not in CONSTANTS and item.outputs]
    given = [(INPUT, (name,)) for name in block.inputs]
    for kind, ways in WAYS.items():
        stage = "vela" if kind in (_DROPPED, _LOST) else "run"
        for op, tensors in given if kind == _DROPPED else made:
            signature = op if kind == _WRONG else _STEPS.get(op, "POOL") if stage == "run" else ""
            bucket = f"{BUCKET_VERSION}/{kind}/{stage}/{VELA}/{family}/{signature}"
            for facts in ways:
                finding = _finding(case, bucket, tosa_place(block, tensors, facts))
                yield f"numeric/{op}" if kind == _WRONG else kind, finding


_STEPS = {
    **dict.fromkeys(("CONV2D", "TRANSPOSE_CONV2D", "MATMUL"), "CONV"),
    "DEPTHWISE_CONV2D": "DEPTHWISE",
    **dict.fromkeys(("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "ABS", "SELECT"), "ELEMENTWISE"),
}
"""The step of a command stream that makes an operator, for its bucket; POOL for all others."""


def _finding(case: Case, bucket: str, place: Place | None) -> Finding:
    words = bucket.split("/")
    return Finding(
        bucket=bucket,
        oracle=words[1],
        kind=words[2],
        target=case.target,
        stage=words[3],
        pass_name=None if words[4] == "-" else words[4],
        message="",
        chain=operator_chain(case.graph),
        recipe=case.recipe,
        case="",
        place=place,
    )


class Masking:
    """Adds up what cases say.

    The share of a family is the mean, over the cases that have a place of it, of the part of its imaginary findings
    that is called known: the chance that a bug at one place of a drawn graph is masked.
    """

    def __init__(self) -> None:
        self.cases = 0
        self._known: dict[str, list[float]] = {}
        self._alike: dict[str, list[float]] = {}
        self._entries: dict[str, Counter[str]] = {}

    def add(self, counts: Mapping[str, Counts]) -> None:
        """Count one case."""
        self.cases += 1
        for family, item in counts.items():
            self._known.setdefault(family, []).append(item.known / item.places)
            self._alike.setdefault(family, []).append(item.alike / item.places)
            self._entries.setdefault(family, Counter()).update(item.entries)

    @property
    def shares(self) -> dict[str, tuple[int, float, float]]:
        """Family -> cases that have it, share called known, share that resembles; the largest share first."""
        rows = {
            family: (len(parts), sum(parts) / len(parts), sum(self._alike[family]) / len(parts))
            for family, parts in self._known.items()
        }
        return dict(sorted(rows.items(), key=lambda row: (-row[1][1], -row[1][2], row[0])))

    def lines(self) -> list[str]:
        """The table for people."""
        shares = self.shares
        mean = sum(known for _, known, _ in shares.values()) / max(len(shares), 1)
        before = sum(alike for _, _, alike in shares.values()) / max(len(shares), 1)
        rows = [
            f"  {family:<58}{cases:>6} cases  known {100 * known:5.1f} %  resembling {100 * alike:5.1f} %"
            + "".join(f"  {entry}" for entry, _ in self._entries[family].most_common(2))
            for family, (cases, known, alike) in shares.items()
        ]
        return [
            f"a bug that nobody knows would be called known, by family of buckets ({self.cases} cases):",
            *rows,
            f"mean over {len(shares)} families: known {100 * mean:.2f} %, resembling {100 * before:.1f} %",
        ]
