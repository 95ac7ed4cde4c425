"""Conditions from smallest programs: what is not plain at a place is asked for."""

import msgspec

from harness.case.place import Place, PlacedOperator
from harness.reports.bugs.predicates import condition_of, toml

PLAIN = {"batch": 1, "rank": 4, "out_rank": 4, "dtype": "int8"}
PLACE = Place(
    graph="tosa",
    operators=(
        PlacedOperator(op="INPUT", facts={"rank": 4}),
        PlacedOperator(op="SLICE", facts={**PLAIN, "behind": 1}, reads=(0,)),
        PlacedOperator(op="INPUT", facts={"rank": 4}),
        PlacedOperator(
            op="CONV2D", facts={**PLAIN, "batch": 2, "kernel": 1, "stride": 1, "pad_before": 1}, reads=(1, 2)
        ),
        PlacedOperator(op="RESCALE", facts=PLAIN, reads=(3,)),
        PlacedOperator(op="RESHAPE", facts={**PLAIN, "ones_only": 1, "out_rank": 5}, reads=(4,)),
    ),
    here=(3,),
)


def test_a_condition_asks_for_what_is_not_plain_and_holds_at_its_own_place():
    found = condition_of(PLACE)
    assert found.path == ("SLICE: behind == 1", "*CONV2D: batch > 1, pad_before > 0", "RESHAPE: out_rank > 4")
    assert found.holds(PLACE)
    found.check()


def test_siblings_that_show_the_bug_may_stand_there():
    found = condition_of(PLACE, {"SLICE": ("TILE", "PAD")})
    assert found.path[0] == "SLICE|TILE|PAD: behind == 1"
    assert toml(found).splitlines()[0] == "[[conditions]]"


def test_where_nothing_tells_the_operator_the_condition_asks_for_what_was_seen():
    untold = msgspec.structs.replace(PLACE, facts={"told": 0, "issue": "unwritten-read"})
    assert condition_of(untold).at == ("issue == unwritten-read",)
    assert condition_of(untold).holds(untold)
