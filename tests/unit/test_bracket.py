"""The bracket from the stages of a delegate: right, wrong as the flatbuffer is, wrong otherwise, not evaluated."""

from dataclasses import replace

import numpy as np
import pytest

from harness.evidence.observation import Domain, Envelope, Mismatch
from harness.locate.blame.bracket import AFTER, BEFORE, Bracket, Stage, blamed, bracket_of
from harness.locate.blame.values import _apart, freedom, suspects_of
from tests.faults.planted import verdict_of

OTHER = "wrong in another way"


def bracket(*verdicts):
    """P0, P1… with these verdicts, then a flatbuffer that is wrong."""
    found = [
        Stage(f"P{index}", False if verdict == OTHER else verdict, verdict is False)
        for index, verdict in enumerate(verdicts)
    ]
    return bracket_of([*found, Stage(AFTER, False)])


def test_adjacent_graphs_give_one_pass():
    assert bracket(True, True, False, False) == Bracket("P1", "P2", True)


def test_what_cannot_be_evaluated_widens_the_bracket():
    assert bracket(True, None, False) == Bracket("P0", "P2", False)
    assert bracket(None, False) == Bracket(None, "P1", False)
    assert bracket(None, None) == Bracket(None, AFTER, False)


def test_a_graph_between_wrong_ones_that_cannot_be_evaluated_does_no_harm():
    assert bracket(True, False, None, False) == Bracket("P0", "P1", True)


def test_what_is_wrong_otherwise_than_the_flatbuffer_names_no_pass_alone():
    assert bracket(True, OTHER, False) == Bracket("P0", "P2", False)
    assert bracket(True, OTHER, OTHER) == Bracket("P0", AFTER, False)
    assert bracket(True, False, OTHER, False) == Bracket("P0", "P3", False)


def test_what_is_wrong_otherwise_and_then_right_is_no_evidence():
    assert bracket(True, OTHER, True, False) == Bracket("P2", "P3", True)


def test_the_same_wrong_outputs_before_right_ones_widen_the_bracket():
    assert bracket(True, False, True, False) == Bracket("P0", "P3", False)


HIDDEN = (
    Stage("P0", True),
    Stage("P1", True),
    Stage("P2", True),
    Stage("P3", False),
    Stage(AFTER, False),
)
"""Right within rounding until P3, which moves values no further than rounding does."""


def test_what_rounding_may_hide_is_between_the_pass_that_is_suspected_and_the_one_that_shows_it():
    assert bracket_of(HIDDEN) == Bracket("P2", "P3", True)
    assert bracket_of(HIDDEN, {"P2"}) == Bracket("P1", "P3", False)
    assert bracket_of(HIDDEN, {"P1", "P2"}) == Bracket("P0", "P3", False)
    assert bracket_of(HIDDEN, {"P0"}) == Bracket(None, "P3", False)
    unlike = [replace(stage, alike=stage.right is False) for stage in HIDDEN]
    assert bracket_of(unlike, {"P2"}) == Bracket("P2", "P3", True)


def test_a_suspect_that_is_no_pass_before_the_wrong_one_changes_nothing():
    assert bracket_of(HIDDEN, {"P3", "serializer", "P9"}) == Bracket("P2", "P3", True)


def test_suspects_are_the_passes_that_are_blamed_without_a_run():
    blames = [
        Mismatch("qparams", "zero point differs", "", pass_name="P1"),
        Mismatch("constants", "bias differs", "", pass_name="P2"),
        Mismatch("qparams", "clamp lost", ""),
        Mismatch("qparams", "no defect", "", pass_name="P3", information=True),
        Mismatch("numeric", "outside rounding", "", pass_name="P4"),
    ]
    assert suspects_of(blames) == {"P1", "P2"}


def test_right_to_the_end_is_the_serializer_and_wrong_from_the_start_is_not_in_this_delegate():
    assert bracket(True, True) == Bracket("P1", AFTER, True)
    assert bracket(True, None) == Bracket("P0", AFTER, False)
    assert bracket(False, False) == Bracket()


def test_a_right_flatbuffer_is_not_to_blame():
    assert bracket_of([Stage("P0", True), Stage(AFTER, True)]) == Bracket()
    assert bracket_of([Stage(AFTER, None)]) == Bracket()


def test_a_mismatch_names_its_bracket():
    mismatch = Mismatch("numeric", "outside rounding", "wrong")
    assert blamed(mismatch, Bracket()) == mismatch
    exact = blamed(mismatch, Bracket("P1", "P2", True))
    assert (exact.pass_name, exact.message) == ("P2", "wrong; first wrong after P2")
    wide = blamed(mismatch, Bracket("P0", "P2", False))
    assert (wide.pass_name, wide.last_right) == ("P0..P2", "P0")
    assert wide.message == "wrong; right after P0, wrong after P2"


def test_a_bracket_without_a_right_graph_says_that_it_is_one():
    wide = blamed(Mismatch("numeric", "outside rounding", "wrong"), Bracket(None, "P2", False))
    assert (wide.pass_name, wide.last_right) == ("start..P2", "start")
    assert "right after nothing that could be evaluated" in wide.message
    before = blamed(Mismatch("numeric", "outside rounding", "wrong"), Bracket(None, BEFORE, True))
    assert (before.pass_name, before.last_right) == (BEFORE, None)


def test_two_roundings_of_a_value_are_at_most_its_envelope_and_a_step_apart():
    low = np.array([0.0, -1.0, -np.inf])
    envelope = Envelope(low, np.array([0.5, 1.0, np.inf]))
    assert freedom(envelope, Domain(0.25, 0, -128, 127)) == 2.0 + 0.375
    assert 2.0 < freedom(envelope, None) < 2.0 + 1e-6


def test_not_a_number_is_apart_from_every_number():
    one, other = np.array([np.nan, np.nan, 1.0, np.inf]), np.array([np.nan, 1.0, 3.0, np.inf])
    assert _apart(one, other).tolist() == [0.0, np.inf, 2.0, 0.0]


@pytest.mark.parametrize(
    ("named", "verdict"),
    [
        ("P2", "exact"),
        ("P1", "WRONG"),
        ("P1..P2", "bracket"),
        ("P0..P3", "bracket"),
        ("P2..P3", "WRONG"),
        ("P0..P1", "WRONG"),
        ("start..P2", "bracket"),
        (None, "none"),
    ],
)
def test_the_survey_holds_what_is_named_against_the_culprit(named, verdict):
    assert verdict_of("P2", named, [BEFORE, "P0", "P1", "P2", "P3", AFTER]) == verdict
