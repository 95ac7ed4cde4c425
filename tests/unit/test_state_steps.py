"""State in drawn graphs: steps build valid graphs, torch keeps what they write, no input is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generators import state
from generators.cases import draw_block
from generators.graph_pool import GraphPool
from generators.sizes import draw_shape
from harness.case.aten import changed_state, written_values
from harness.case.building import module_of
from harness.case.case import Case, Distribution, Graph, Seeds
from harness.case.checking import check_case
from tests.unit.test_operators import quick

Step = Callable[[GraphPool, str], None]
every_step = pytest.mark.parametrize("step", state.STEPS, ids=lambda step: step.__name__)


def case_of(graph: Graph) -> Case:
    uniform = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    return Case(
        graph=graph,
        calibration={item.name: uniform for item in graph.inputs},
        samples=1,
        seeds=Seeds(weights=0, calibration=0, evaluation=0),
        target="TOSA-1.0+INT",
        recipe="a8w8",
    )


def drawn(draw: Any, step: Step) -> Case:
    pool = GraphPool(draw)
    source = pool.input(draw_shape(draw, draw(st.integers(1, 4))))
    if pool.shape(source)[0] > state.MOST_ROWS:
        source = pool.input((2, 3))
    step(pool, source)
    assert len(pool.nodes) <= state.MOST_NODES
    return case_of(pool.finish())


@every_step
def test_a_step_is_a_graph_that_torch_runs(step: Step) -> None:
    @quick(25)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        case = drawn(data.draw, step)
        check_case(case)
        module, values = module_of(case), {item.name: torch.rand(item.shape) for item in case.graph.inputs}
        before = {name: value.clone() for name, value in values.items()}
        kept = {name: value.clone() for name, value in module.named_buffers()}
        module(*values.values())
        assert all(torch.equal(values[name], before[name]) for name in values)  # no input is written
        changed = {name for name, value in module.named_buffers() if not torch.equal(value, kept[name])}
        assert changed <= changed_state(case.graph)
        assert written_values(case.graph)

    check()


@every_step
def test_what_is_written_is_state_or_a_computed_value(step: Step) -> None:
    @quick(25)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        graph = drawn(data.draw, step).graph
        inputs = {item.name for item in graph.inputs}
        assert not inputs & set(written_values(graph).values())
        if step is state.part:
            assert not changed_state(graph)
        else:
            assert len(changed_state(graph)) == 1

    check()


def test_a_counter_begins_with_what_the_call_before_left() -> None:
    @settings(max_examples=1, database=None, derandomize=True, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        pool = GraphPool(data.draw)
        state.counter(pool, pool.input((2, 3)))
        module = module_of(case_of(pool.finish()))
        results = [module(torch.zeros(2, 3)).tolist() for _ in range(3)]
        assert results == [[[float(call)] * 3] * 2 for call in (1, 2, 3)]

    check()


def test_campaigns_draw_state_in_one_of_some_twenty_graphs() -> None:
    graphs = [case.graph for block in range(20) for (case,) in draw_block(3, block, 20, ("TOSA-1.0+INT",))]
    written = [graph for graph in graphs if graph.captured and written_values(graph)]
    assert 10 <= len(written) <= 80
    kinds = {node.operator for graph in written for node in graph.nodes if node.operator.startswith("aten.")}
    assert {"aten.add_.Tensor", "aten.copy_.default", "aten.index_copy_.default", "aten.slice.Tensor"} <= kinds
