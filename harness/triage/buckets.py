"""Buckets: the key under which mismatches that share a cause collect.

The *coarse* key (version ``v1``) is oracle, kind, stage, pass, target family and signature. It
does not contain shapes, names or numbers, so it stays the same while a case shrinks. The *final* key
(``final_key``) adds the operators of the smallest case that shows the bucket. Each bucket
has one exception class, cached, because Hypothesis identifies a failure by its exception's type
and place.
"""

from __future__ import annotations

from functools import cache

from harness.case.case import Graph
from harness.case.chains import operator_chain
from harness.case.target import parse_target
from harness.evidence.observation import Mismatch

BUCKET_VERSION = "v1"
NO_OUTPUT = "no native output"
"""What is said of a process that died without a word."""
SILENT_DEATH = f"|{NO_OUTPUT.replace(' ', '-')}|"
"""In the bucket of such a death: it says too little as well."""
VELA_STAGE = "vela"
"""The stage in which Vela compiles: native code, whose messages name no place."""
STAGES = ("build", "export", "prepare", "calibrate", "convert", "export-quantized", "lower", VELA_STAGE, "emit")
"""What a compile goes through, in order; legs and probes come behind it."""
OUT_OF_RANGE = ", out-of-range input only"
"""Ends the kind of a value mismatch that no input inside the calibrated range shows."""


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


def family_of(bucket: str) -> str:
    """The target family of a bucket; empty if it names none."""
    words = bucket.split("/")
    return words[5] if len(words) > 6 else ""


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
