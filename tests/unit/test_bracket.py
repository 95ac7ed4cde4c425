"""The bracket from a list of verdicts: right, wrong, not to be evaluated."""

from dataclasses import dataclass

from harness.blame.bracket import AFTER, BEFORE, Bracket, _bracket, blamed
from harness.observation import Mismatch


@dataclass
class Graph:
    name: str


def bracket(*verdicts):
    return _bracket([Graph(f"P{index}") for index in range(len(verdicts))], verdicts)


def test_adjacent_graphs_give_one_pass():
    assert bracket(True, True, False, False) == Bracket("P1", "P2", True)


def test_what_cannot_be_evaluated_widens_the_bracket():
    assert bracket(True, None, False) == Bracket("P0", "P2", False)
    assert bracket(None, None) == Bracket()


def test_the_last_right_graph_counts():
    assert bracket(True, False, True, False) == Bracket("P2", "P3", True)


def test_right_to_the_end_is_the_serializer_and_wrong_from_the_start_is_earlier():
    assert bracket(True, True) == Bracket("P1", AFTER, True)
    assert bracket(True, None) == Bracket("P0", AFTER, False)
    assert bracket(False, False) == Bracket(None, BEFORE, True)


def test_a_mismatch_names_its_bracket():
    mismatch = Mismatch("numeric", "outside rounding", "wrong")
    assert blamed(mismatch, Bracket()) == mismatch
    exact = blamed(mismatch, Bracket("P1", "P2", True))
    assert (exact.pass_name, exact.message) == ("P2", "wrong; first wrong after P2")
    wide = blamed(mismatch, Bracket("P0", "P2", False))
    assert (wide.pass_name, wide.last_right) == ("P0..P2", "P0")
