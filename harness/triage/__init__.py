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

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

from harness.case import Case, Graph, maker_of
from harness.constants import CONSTANT_KINDS
from harness.inspection.surroundings import case_place, plain_name
from harness.observation import Mismatch
from harness.place import Place
from harness.target import parse_target

BUCKET_VERSION = "v1"
CRASH = "crash"
VALUE_ORACLES = ("numeric", "outputs", "quality", "metamorphic")
"""Oracles that speak of values: their coarse buckets may hold several causes."""
COARSE_ORACLES = (*VALUE_ORACLES, "qparams", "constants", "stream", "buffers")
"""Oracles whose coarse buckets say too little: which bug it is, the operators have to say as well."""
NO_OUTPUT = "no native output"
"""What is said of a process that died without a word."""
SILENT_DEATH = f"|{NO_OUTPUT.replace(' ', '-')}|"
"""In the bucket of such a death: it says too little as well."""
VELA_STAGE = "vela"
"""The stage in which Vela compiles: native code, whose messages name no place."""
OUT_OF_RANGE = ", out-of-range input only"
"""Ends the kind of a value mismatch that no input inside the calibrated range shows."""
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

    @property
    def known(self) -> bool:
        """Is it proved to be an entry's bug?"""
        return self.state == "known"


class BucketFailure(AssertionError):
    """Base of the exception classes that stand for buckets."""


def bucket_of(mismatch: Mismatch, target: str) -> str:
    """The coarse key. A bracket wider than one pass may narrow while a case shrinks: it is left out."""
    wide = mismatch.last_right is not None and ".." in (mismatch.pass_name or "")
    words = (
        mismatch.oracle,
        mismatch.kind,
        mismatch.stage,
        "-" if wide else mismatch.pass_name or "-",
        parse_target(target).family,
        mismatch.signature,
    )
    return "/".join((BUCKET_VERSION, *(word.replace("/", ":").replace(" ", "-") for word in words)))


def any_family(bucket: str) -> str:
    """A bucket with its target family replaced by ``*``: the same bug on another target."""
    words = bucket.split("/")
    return "/".join((*words[:5], "*", *words[6:])) if len(words) > 6 else bucket


def any_range(bucket: str) -> str:
    """A bucket without the words that a mismatch needs out-of-range input: the same bug, seen less often."""
    return bucket.replace(OUT_OF_RANGE.replace(" ", "-"), "")


def any_pass(bucket: str) -> str:
    """A bucket without its pass: one run may bracket what another cannot."""
    words = bucket.split("/")
    return "/".join((*words[:4], "*", *words[5:])) if len(words) > 5 else bucket


def oracle_of(bucket: str) -> str:
    """The oracle whose mismatches a bucket holds."""
    return bucket.split("/")[1]


def kind_of_bucket(bucket: str) -> str:
    """Oracle and kind, as ``stream/hazard``."""
    return "/".join(bucket.split("/")[1:3])


def pass_of(bucket: str) -> str | None:
    """The pass that a bucket names, if it names one."""
    words = bucket.split("/")
    return words[4] if len(words) > 4 and words[4] != "-" else None


@cache
def bucket_exception(bucket: str) -> type[BucketFailure]:
    """The one exception class of a bucket."""
    return type("Bucket", (BucketFailure,), {"bucket": bucket, "__doc__": bucket})


def final_key(bucket: str, graph: Graph) -> str:
    """The final key: the coarse one and the operators of the smallest case (``…#permute>flatten>select``)."""
    return f"{bucket}#{'>'.join(operator_chain(graph))}"


def operator_chain(graph: Graph, output: int | None = None) -> tuple[str, ...]:
    """Operators (and constant kinds) that an output depends on, in topological order.

    :param output: index of the output; None stands for all of them.
    """
    wanted = set(graph.outputs if output is None else (graph.outputs[output],))
    wanted = set(map(maker_of, wanted))
    chain: list[str] = []
    for node in reversed(graph.nodes):
        if node.name in wanted:
            chain.append(node.operator)
            wanted |= set(map(maker_of, node.inputs))
    constants = [item.kind for item in graph.constants if item.name in wanted and not CONSTANT_KINDS[item.kind].stored]
    return (*constants, *reversed(chain))


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
        information=mismatch.information,
        place=mismatch.place or (case_place(case.graph) if mismatch.oracle == CRASH else None),
        chain=operator_chain(case.graph, output if isinstance(output, int) else None),
    )


def contains_in_order(chain: Sequence[str], wanted: Sequence[str]) -> bool:
    """Do the words of ``wanted`` (``relu|hardtanh``: one of them) occur in ``chain``, in this order?

    ``relu`` stands for a captured module's ``aten.relu.default`` and ``aten.relu_.default`` as well.
    """
    rest = iter(chain)
    return all(any({item, plain_name(item)} & {*word.split("|")} for item in rest) for word in wanted)


def has_pattern(graph: Graph, patterns: Sequence[Sequence[str]]) -> bool:
    """Does a graph contain one of several operator patterns (``contains_in_order``)?"""
    chain = operator_chain(graph)
    return any(contains_in_order(chain, pattern) for pattern in patterns)


def measured_size(measured: Mapping[str, Any]) -> str:
    """The size of a mismatch for a listing: ``13 steps``, or nothing."""
    distance = measured.get("distance", measured.get("excess"))
    return "" if distance is None else f"{distance:g} {measured.get('unit', '')}".rstrip()
