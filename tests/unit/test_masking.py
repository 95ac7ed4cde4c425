"""The census of masking: an imaginary bug at every operator, in every way that a condition of the corpus asks for."""

from collections import Counter

import msgspec

from harness.triage.buckets import pass_of
from harness.triage.conditions import Condition
from harness.triage.corpus import bugs_of, default_corpus, entries
from harness.triage.known import KnownBug, classified
from harness.triage.masking import VELA, Counts, Masking, vela_findings
from tests.unit.observations import CASE
from tests.unit.test_surroundings import graph

TARGETS = {"ethos-u55": "ethos-u55-128", "ethos-u85": "ethos-u85-256"}
ON_U55 = msgspec.structs.replace(CASE, target="ethos-u55-128")
NUMERIC = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u55/RESCALE"


def family_of(bucket: str) -> str:
    """The target family of a bucket."""
    return bucket.split("/")[5]


def known_by(bucket: str, **condition: object) -> dict[str, tuple[int, int]]:
    """Family -> imaginary findings in a graph of SLICE, CONV2D, TRANSPOSE and RESHAPE, and those called known."""
    bug = KnownBug(entry="a-bug", bucket=bucket, conditions=(Condition(**condition),))
    there, taken = Counter[str](), Counter[str]()
    for family, finding in vela_findings(ON_U55, graph()):
        there[family] += 1
        taken[family] += classified(finding, [bug]).known
    return {family: (count, taken[family]) for family, count in there.items()}


def test_every_condition_about_vela_can_hold_of_an_imaginary_bug():
    """A condition whose evidence no imaginary bug shows would count as masking nothing.

    One on whole smallest programs masks nothing that was not reduced.
    """
    anywhere = ("SLICE|CONV2D|TRANSPOSE|RESHAPE|ABS",)
    blind = []
    for bug in bugs_of(entries([default_corpus()])):
        for condition in bug.conditions:
            family = next(iter(condition.families), family_of(bug.bucket))
            target = TARGETS.get(family, "ethos-u55-128")
            case = msgspec.structs.replace(CASE, target=target, recipe=bug.recipe or CASE.recipe)
            found = [finding for _, finding in vela_findings(case, graph())]
            placeless = msgspec.structs.replace(bug, conditions=(msgspec.structs.replace(condition, path=anywhere),))
            if condition.graph == "tosa" and not condition.whole and pass_of(bug.bucket) == VELA:
                blind += [bug.entry] if all(placeless.proof(finding) is None for finding in found) else []
    assert blind == []


def test_a_wide_condition_is_seen_to_mask_and_a_narrow_one_masks_its_place_alone():
    wide = known_by(NUMERIC, path=("SLICE", "*CONV2D"))
    narrow = known_by(NUMERIC, path=("SLICE", "*CONV2D: batch > 1"), at=("share < 1", "unwritten == 0"))
    other = known_by(NUMERIC, path=("SLICE", "*CONV2D: batch > 2"))
    assert (wide["numeric/CONV2D"], narrow["numeric/CONV2D"], other["numeric/CONV2D"]) == ((3, 3), (3, 1), (3, 0))
    assert wide["numeric/SLICE"] == wide["numeric/ABS"] == (3, 0)
    assert wide["numeric/TRANSPOSE"] == (3, 3)  # gone through behind the convolution
    assert wide["stream/duplicate"] == (5, 0)


def test_evidence_of_the_stream_is_imagined_at_each_operator():
    waits = known_by("v1/stream/hazard/run/Vela/ethos-u55/DMA_START", at=("missing == KERNEL_WAIT",))
    dropped = known_by("v1/buffers/input-count/vela/Vela/ethos-u55/", path=("*SLICE",), shows=("buffers/input-count",))
    assert waits["stream/hazard"] == (25, 5)
    assert waits["stream/out-of-bounds"] == (5, 0)
    assert dropped["buffers/input-count"] == (1, 1)


def test_the_share_of_a_family_is_the_mean_over_the_cases_that_have_it():
    made = Masking()
    made.add({"numeric/PAD": Counts(4, 1, 2, {"a": 1}), "numeric/ABS": Counts(2, 0, 0)})
    made.add({"numeric/PAD": Counts(2, 0, 2)})
    assert made.shares == {"numeric/PAD": (2, 0.125, 0.75), "numeric/ABS": (1, 0.0, 0.0)}
    assert "mean over 2 families: known 6.25 %" in made.lines()[-1]
