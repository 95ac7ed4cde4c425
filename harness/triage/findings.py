"""Buckets: the key under which mismatches that share a cause collect.

The *coarse* key (version ``v1``) is oracle, kind, stage, pass, target family and signature. It
does not contain shapes, names or numbers, so it stays the same while a case shrinks. The *final* key
(``final_key``) adds the operators of the smallest case that shows the bucket. Each bucket
has one exception class, cached, because Hypothesis identifies a failure by its exception's type
and place.

A *finding* is a mismatch with its case, at its place, in one of three states: *known* is proved to be a corpus
entry's bug, *resembling* looks like one and nothing proves it, *new* is the rest (``harness.triage.known``). A finding
begins as new; whoever has a corpus says more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from harness.case.case import Case
from harness.case.chains import operator_chain
from harness.case.place import Place
from harness.case.wording import counted_as
from harness.evidence.inspection.surroundings import case_place
from harness.evidence.observation import CRASH, Mismatch
from harness.triage.buckets import bucket_of

DOMAINS = "quantized values: "
"""Begins the line of a crash finding's detail that lists what PT2E had decided by then."""


State = Literal["new", "resembling", "known"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One mismatch with its case: what a run reports, JSON as docs/architecture.md fixes it.

    ``pass`` is a Python keyword, so the field is ``pass_name`` and renamed in JSON.

    :param information: worth telling and no defect; counts only if asked for (``--strict``).
    :param state: proved to be an entry's bug, only alike, or neither.
    :param entry: the corpus entry that it is, or is like.
    :param proof: what proves it to be known, in one sentence.
    :param place: the operators around it.
    :param node: the node of the case's graph that it is about, or ``FILE:LINE`` of the user's own module; empty where
        nothing tells.
    :param fingerprint: of the smallest TOSA program that shows it, if it is Vela's and was reduced.
    """

    bucket: str
    oracle: str
    kind: str
    state: State = "new"
    entry: str = ""
    proof: str = ""
    target: str
    legs: tuple[str, ...] = ()
    stage: str
    pass_name: str | None = msgspec.field(default=None, name="pass")
    message: str
    measured: dict[str, Any] = {}
    chain: tuple[str, ...] = ()
    recipe: str = ""
    case: str
    upstream: str | None = None
    detail: str = ""
    information: bool = False
    place: Place | None = None
    node: str = ""
    fingerprint: str = ""

    @property
    def known(self) -> bool:
        """Is it proved to be an entry's bug?"""
        return self.state == "known"


def finding_of(mismatch: Mismatch, case: Case, path: str, detail: str = "") -> Finding:
    """Put a mismatch and its case together."""
    output = mismatch.measured.get("output")
    return Finding(
        bucket=bucket_of(mismatch, case.target),
        oracle=mismatch.oracle,
        kind=mismatch.kind,
        target=case.target,
        legs=mismatch.legs or (),
        stage=mismatch.stage,
        pass_name=mismatch.pass_name,
        message=mismatch.message,
        measured=dict(mismatch.measured),
        recipe=case.recipe,
        case=path,
        detail=detail or mismatch.detail,
        node=mismatch.node,
        information=mismatch.information,
        place=mismatch.place or (case_place(case.graph) if mismatch.oracle == CRASH else None),
        chain=operator_chain(case.graph, output if isinstance(output, int) else None),
    )


def measured_size(measured: Mapping[str, Any]) -> str:
    """The size of a mismatch for a listing: ``13 steps``, or nothing."""
    distance = measured.get("distance", measured.get("excess"))
    if distance is None:
        return ""
    unit = measured.get("unit")
    return counted_as(float(distance), unit.removesuffix("s")) if unit else f"{distance:g}"
