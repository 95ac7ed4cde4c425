"""The tally: nothing is silently green, counts are right, buckets are ranked."""

import msgspec

from harness.campaign.summary import Tally, as_json, by_cause
from harness.evidence.observation import Mismatch, Unjudged
from harness.reports.listing import listing, verdict
from harness.triage.findings import finding_of
from harness.workers.protocol import CaseResult, Tightness
from tests.unit.observations import CASE

FINDING = finding_of(
    Mismatch("numeric", "outside rounding", "off", measured={"distance": 13.0, "unit": "steps", "output": 0}),
    CASE,
    "c.json",
)
LEGS = {"eager": "ran", "tosa-reference": "failed", "ethos-u-model": "not installed"}


def test_a_skipped_leg_is_counted_with_its_reason():
    tally = Tally()
    tally.add(CaseResult(case="c", legs=LEGS))
    tally.add(CaseResult(case="c", legs=LEGS))
    table = tally.leg_table()
    assert table["eager"]["ran"] == 2
    assert table["tosa-reference"] == {"ran": 0, "skipped": 2, "why": "2x failed", "unjudged": ""}
    assert table["ethos-u-model"]["why"] == "2x not installed"
    assert "leg ethos-u-model: ran 0, skipped 2 (2x not installed)" in listing(tally)


def test_reasons_that_differ_in_numbers_are_one_in_the_words_of_the_commonest():
    tally = Tally()
    for reason in (
        "24 bytes where 96 are",
        "2 bytes where 8 are",
        "2 bytes where 8 are",
        "at 0x0120: no",
        "at 0x03cc: no",
    ):
        tally.add(CaseResult(case="c", legs={"eager": reason}))
    assert tally.leg_table()["eager"] == {
        "ran": 0,
        "skipped": 5,
        "why": "3x 2 bytes where 8 are; 2x at 0x0120: no",
        "unjudged": "",
    }


def test_the_listing_shows_chain_target_size_and_case():
    tally = Tally()
    tally.add(CaseResult(case="c.json", findings=(FINDING,)))
    text = "\n".join(listing(tally))
    assert "1 new finding, 1 kind" in text
    assert "relu on TOSA-1.0+INT, a8w8: 13 steps" in text
    assert text.split("\n\n")[1].endswith("        replay: armdiff replay c.json")


def test_json_has_what_design_fixes():
    tally = Tally(graphs=1)
    tally.add(CaseResult(case="c.json", findings=(FINDING,), seconds={"lower": 1.0}, tightness=Tightness(bound=1.0)))
    data = as_json(tally)
    assert {"armdiff", "releases", "graphs", "cases", "legs", "findings", "seconds", "unjudged"} <= set(data)
    assert {"bucket", "oracle", "known", "target", "legs", "stage", "pass", "message", "measured", "case"} <= set(
        data["findings"][0]
    )
    assert data["seconds"] == {"lower": 1.0}


def test_what_was_not_judged_is_in_the_listing_the_leg_table_the_json_and_the_verdict():
    tally = Tally()
    assert verdict(tally) == "nothing new"
    sin = Unjudged(what="aten.sin", why="no rule of rounding", leg="tosa-reference", outputs=(0, 2), parts=7, of=8)
    tally.add(CaseResult(case="c.json", legs=LEGS, unjudged=(sin,)))
    tally.add(CaseResult(case="d.json", legs=LEGS))
    assert verdict(tally) == "nothing new; 2 outputs of 1 case unjudged (aten.sin)"
    text = listing(tally)
    assert "unjudged: aten.sin: 2 outputs of 1 case, 7 of 8 elements: no rule of rounding" in text
    assert "leg tosa-reference: ran 0, skipped 2 (2x failed), unjudged 2 outputs of 1 case (aten.sin)" in text
    data = as_json(tally)
    assert data["legs"]["tosa-reference"]["unjudged"] == "2 outputs of 1 case (aten.sin)"
    assert data["unjudged"] == {
        "aten.sin": {
            "outputs": 2,
            "cases": 1,
            "why": "no rule of rounding",
            "parts": {"elements": {"unjudged": 7, "of": 8}},
        }
    }
    tally.add(CaseResult(case="e.json", findings=(FINDING,)))
    assert verdict(tally) == "new findings; 2 outputs of 1 case unjudged (aten.sin)"


def test_unrepeated_mismatches_do_not_count():
    tally = Tally()
    tally.add(CaseResult(case="c", unrepeated=(FINDING,)))
    assert tally.new == []
    assert any("did not show a second time" in line for line in listing(tally))


def test_one_bug_on_several_targets_is_one_group_with_the_shortest_chain_first():
    long = msgspec.structs.replace(FINDING, chain=("conv2d", "relu"), case="long")
    elsewhere = msgspec.structs.replace(FINDING, bucket=FINDING.bucket.replace("tosa-int", "ethos-u55"), case="z")
    crash = msgspec.structs.replace(FINDING, oracle="crash", bucket="v1/crash/exception/lower/-/tosa-int/x")
    groups = by_cause([crash, crash, crash, crash, long, elsewhere, FINDING])
    assert list(groups) == ["v1/numeric/outside-rounding/run/-/*/", "v1/crash/exception/lower/-/*/x"]
    assert [item.case for item in groups["v1/numeric/outside-rounding/run/-/*/"]] == ["c.json", "z", "long"]
