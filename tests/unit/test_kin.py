"""Graphs like a bug's own case: valid, mostly others, mostly with its operators; and when enough are compared."""

from dataclasses import dataclass

import pytest

from generators.kin import draw_kin
from harness.campaign.certify.kin import BATCH, Goal, kin_of, until_enough
from harness.case.aten import writes
from harness.case.case import case_digest, encode_case
from harness.case.chains import has_pattern
from harness.case.checking import value_types
from harness.case.reading import decode_case, read_case
from harness.case.recipe import parse_recipe
from harness.triage.corpus import default_corpus
from harness.workers.protocol import Comparison

CORPUS = default_corpus() / "found"


def case_of(name):
    return read_case(CORPUS / name)


@pytest.mark.parametrize(
    "name", ["cat-repeated-input-dropped", "vela-u85-chained-int16-tables", "int64-index-cast-before-cpu-gather"]
)
def test_kin_are_other_valid_cases_on_the_same_target_with_the_same_operators(name):
    case = case_of(name)
    kin = draw_kin(case, 0, 40)
    assert len(kin) == 40
    assert all(decode_case(encode_case(item)) == item and item.target == case.target for item in kin)
    assert sum(item.graph != case.graph for item in kin) >= 30
    wanted = [tuple(node.operator for node in case.graph.nodes)]
    assert sum(has_pattern(item.graph, wanted) for item in kin) >= 30
    assert {item.recipe for item in kin} > {case.recipe}
    shapes = {tuple(entry.shape for entry in item.graph.inputs) for item in kin}
    assert len(shapes) > 3


def test_the_same_arguments_draw_the_same_kin_and_more_append():
    case = case_of("cat-repeated-input-dropped")
    assert draw_kin(case, 3, 25)[:12] == draw_kin(case, 3, 12)
    assert draw_kin(case, 4, 12) != draw_kin(case, 3, 12)


def test_a_node_that_the_recipe_sets_apart_is_set_apart_in_kin_under_its_new_name():
    case = case_of("float-pad-no-out-variant")
    kin = draw_kin(case, 0, 60)
    apart = [
        any(node.operator == "pad" and node.name in parse_recipe(item.recipe).float_nodes for node in item.graph.nodes)
        for item in kin
    ]
    assert sum(apart) > 30
    assert len({item.graph.nodes[-1].name for item in kin}) > 1


def test_no_kin_has_a_value_without_elements():
    """With sizes of one, rows 1 to 3 of a tensor are none."""
    kin = draw_kin(case_of("vela-u85-one-row-dma-not-awaited"), 0, 400)
    assert all(type_.elements > 0 for item in kin for type_ in value_types(item.graph).values())
    assert len(kin) == 400


def test_a_captured_graph_has_no_kin_and_nothing_stands_behind_an_edit_by_hand():
    assert draw_kin(read_case(default_corpus() / "seeds" / "001-conv-relu-cat"), 0, 5) == []
    edited = read_case(default_corpus() / "seeds" / "004-passthrough-domain-change")
    kin = draw_kin(edited, 0, 40)
    assert kin
    assert {item.recipe for item in kin} == {edited.recipe}
    assert {item.graph.nodes[-1].operator for item in kin} == {edited.graph.nodes[-1].operator}


def test_mutants_are_the_kin_of_a_captured_graph_and_write_as_it_does():
    case = case_of("write-into-view-lost")
    kin = [*kin_of([case], 0, 20)]
    assert len({case_digest(item) for item in kin}) == 20
    assert {item.target for item in kin} == {case.target}
    assert sum(any(writes(node.operator) for node in item.graph.nodes) for item in kin) > 15
    stored = read_case(default_corpus() / "seeds" / "001-conv-relu-cat")
    assert [*kin_of([stored], 0, 5)] == []


def test_kin_of_several_cases_come_in_turn():
    cases = [case_of("cat-repeated-input-dropped"), case_of("neg-ignores-scale")]
    first = [item.graph.nodes for item in kin_of(cases, 0, 6)]
    assert len(first) == 6
    assert all(any(node.operator == "cat" for node in nodes) for nodes in first[::2])
    assert all(any(node.operator == "neg" for node in nodes) for nodes in first[1::2])
    assert [*kin_of([], 0, 6)] == []


@dataclass(frozen=True)
class Row:
    comparison: Comparison


def row(*, reached, same):
    return Row(Comparison(variant=("c",), reached=reached, same=same))


def test_comparing_ends_when_enough_came_to_the_correction_and_enough_were_changed():
    goal = Goal(reached=40)
    assert goal.tries == 160
    batches = []

    def compare(cases):
        batches.append(len(cases))
        return [row(reached=True, same=len(batches) < 3) for _ in cases]

    rows = until_enough(iter([object()] * 200), goal, compare)
    assert batches == [BATCH] * 3, "after two batches none was changed"
    assert len(rows) == 60
    batches.clear()
    earlier = [row(reached=True, same=False)] * 10
    until_enough(iter([object()] * 200), goal, compare, [*earlier, row(reached=False, same=False)])
    assert batches == [BATCH] * 2, "graphs that were compared before count, those that did not come to it do not"
    batches.clear()
    assert (
        len(until_enough(iter([object()] * 30), goal, lambda cases: [row(reached=False, same=True)] * len(cases))) == 30
    )
