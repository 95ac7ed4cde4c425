"""Comparing real delegates with their TOSA graphs, right ones and such with one register altered."""

from __future__ import annotations

import numpy as np
import pytest

from generators.tosa_graph import PROPAGATE, TosaGraph
from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vela import VelaPayload, decode_vela
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.commands import decode_commands
from harness.evidence.agreement import DIFFERS_FROM_TOSA
from harness.locate.divergence import compare_delegate, random_draws, tensors_of_steps
from harness.locate.divergence.reference import all_values, computed, exposing
from harness.pipeline.legs.tosa_reference import run_flatbuffer
from harness.tosa.compiling import compile_flatbuffer
from harness.tosa.judging import judge
from harness.tosa.translating import to_flatbuffer
from tests.exactness.building import Graph
from tests.integration.conftest import relu_join_case
from tests.unit.ethosu.assembling import STOP, U55, feature_map, io, kernel, ofm, operation, payload

TARGETS = ("ethos-u55-128", "ethos-u85-256")
SHAPE = (1, 2, 8)


@pytest.fixture(scope="module", params=TARGETS)
def delegate(request, observed):
    """Target, TOSA flatbuffer and payload of conv -> relu -> cat."""
    [record] = observed(relu_join_case(target=request.param)).lowering.delegates
    return request.param, record.tosa, decode_vela(record.payload)


def altered(given: VelaPayload, target: str, step: int, name: str, add: int) -> VelaPayload | None:
    """The payload with another value of a register during one step; None if nothing has set that register."""
    accelerator = accelerator_named(target)
    commands, held, index = [], {}, -1
    for command in decode_commands(given.commands, accelerator):
        held[command.name] = dict(command.fields)
        operates = command.name.startswith("OP_") and command.name not in ("OP_STOP", "OP_IRQ", "OP_PMU_MASK")
        index += operates
        if not operates or index != step:
            commands.append((command.name, command.fields))
            continue
        if name not in held:
            return None
        changed = {**held[name], "value": held[name]["value"] + add}
        commands += [(name, changed), (command.name, command.fields), (name, held[name])]
    return payload(accelerator, commands, given.inputs, given.outputs, given.weights, given.scratch_size)


def test_a_real_delegate_is_exact(delegate):
    target, tosa, given = delegate
    found = compare_delegate(tosa, given, target, random_draws(tosa, 3, 0))
    assert (found.compared, found.refused, found.difference, found.origin) == (3, (), None, None)
    assert found.stopped is None
    assert found.steps
    again = compare_delegate(tosa, altered(given, target, 0, "SET_OFM_REGION", 0), target, random_draws(tosa, 1, 0))
    assert again.difference is None  # so it is the alteration that the next tests see, not the assembler


@pytest.mark.parametrize(("register", "add"), [("SET_OFM_ZERO_POINT", 3), ("SET_ACTIVATION_MAX", -40)])
def test_the_altered_step_is_named(delegate, register, add):
    target, tosa, given = delegate
    draws = random_draws(tosa, 3, 0)
    steps = compare_delegate(tosa, given, target, draws[:1]).steps
    seen, tensors = [], []
    for step in steps:
        wrong = None if "DMA" in step.kind or "WAIT" in step.kind else altered(given, target, step.index, register, add)
        if wrong is None:
            continue
        found = compare_delegate(tosa, wrong, target, draws)
        if found.difference is None:
            continue
        assert found.origin is not None
        seen.append(step.index)
        assert (found.origin.step, found.origin.offset is None) == (step.index, False), str(found.origin)
        tensors.append(found.origin.tensor)
        assert any(line.startswith("> ") for line in found.origin.listing)
    assert len(seen) >= 2
    assert set(tensors) <= {"", *decode_tosa(tosa).main.tensors}  # parts of a transposition in steps have no tensor
    assert any(tensors)


def test_a_difference_without_an_origin(delegate):
    target, tosa, given = delegate
    [last, *_] = reversed(
        [step for step in compare_delegate(tosa, given, target, random_draws(tosa, 1, 0)).steps if step.writes]
    )
    wrong = altered(given, target, last.index, "SET_OFM_ZERO_POINT", 1)
    found = compare_delegate(tosa, wrong, target, random_draws(tosa, 2, 0), origin=False)
    assert found.difference is not None
    assert found.difference.largest >= 1
    assert found.origin is None


def test_every_tensor_of_a_graph(delegate):
    _, tosa, _ = delegate
    block = decode_tosa(tosa).main
    [draw] = random_draws(tosa, 1, 5)
    values = all_values(tosa, draw.arrays)
    names = computed(block)
    assert set(names) | set(block.inputs) <= set(values)
    assert len(names) > len(block.outputs)
    for name, wanted in zip(block.outputs, run_flatbuffer(tosa, draw.arrays), strict=True):
        assert np.array_equal(values[name], wanted)
    for name in names:
        assert values[name].shape == block.tensors[name].shape
    assert decode_tosa(exposing(tosa, names)).main.outputs == tuple(names)
    assert decode_tosa(exposing(tosa, names)).main.operators == block.operators


def _two_inputs(operator: str, **attributes: object) -> bytes:
    graph = Graph()
    one, other = graph.input(SHAPE, "INT8"), graph.input(SHAPE, "INT8")
    return graph.finish("two", graph.add(operator, [one, other], SHAPE, "INT8", **attributes)).tosa


def _copy() -> VelaPayload:
    """Returns its first input."""
    maps = {**feature_map("IFM", SHAPE, 0), **ofm(U55, SHAPE, 64), **kernel(), "IFM_DEPTH_M1": SHAPE[2] - 1}
    return payload(U55, [*operation(U55, "OP_POOL", 1, maps), STOP], [io(SHAPE, 0), io(SHAPE, 16)], [io(SHAPE, 64)])


def test_draws_without_a_valid_reference_do_not_count():
    tosa = _two_inputs("ARITHMETIC_RIGHT_SHIFT", round=False)  # by more than seven bits: unpredictable
    draws = [
        draw._replace(arrays=(draw.arrays[0], np.full_like(draw.arrays[1], 9))) for draw in random_draws(tosa, 2, 0)
    ]
    found = compare_delegate(tosa, _copy(), "ethos-u55-128", draws)
    assert (found.compared, found.difference) == (0, None)
    assert len(found.refused) == 2
    assert found.refused[0].startswith("random integers 0: the TOSA reference model returned TOSA_")


def test_a_payload_of_another_graph():
    tosa = _two_inputs("BITWISE_AND")
    found = compare_delegate(tosa, _copy(), "ethos-u55-128", random_draws(tosa, 2, 0))
    assert found.difference is not None
    assert found.origin is not None
    assert (found.origin.step, found.origin.tosa_operator) == (0, "BITWISE_AND")
    assert found.difference.draw in [draw.name for draw in random_draws(tosa, 2, 0)]


def test_random_draws_cover_the_range_and_repeat():
    tosa = _two_inputs("BITWISE_AND")
    one, other = random_draws(tosa, 40, 1), random_draws(tosa, 40, 1)
    assert [draw.name for draw in one[:2]] == ["random integers 0", "extreme integers 1"]
    for mine, theirs in zip(one, other, strict=True):
        assert all(np.array_equal(*pair) for pair in zip(mine.arrays, theirs.arrays, strict=True))
    values = np.concatenate([array.ravel() for draw in one for array in draw.arrays])
    assert (values.dtype, values.min(), values.max()) == (np.int8, -128, 127)
    special = np.isin(
        np.concatenate([array.ravel() for draw in one[1::2] for array in draw.arrays]), (-128, 127, 0, -1, 1)
    )
    assert 0.4 < special.mean() < 0.6


def test_an_operand_that_is_there_already_is_not_what_a_wrong_step_makes():
    """A minimum over an axis of one element, without that axis: Vela 5.1.0 subtracts it wrongly on Ethos-U55."""
    graph = TosaGraph("u55")
    joined = graph.add(
        "CONCAT", [graph.input((3, 3, 8, 1), "INT8"), graph.input((3, 5, 8, 1), "INT8")], (3, 8, 8, 1), "INT8", Axis=1
    )
    least = graph.add("REDUCE_MIN", [joined], joined.shape, "INT8", Axis=3, NanMode=PROPAGATE)
    graph.add("RESHAPE", [least, graph.dims((3, 8, 8))], (3, 8, 8), "INT8")
    found = judge(graph.program(), "ethos-u55-128")
    assert [(item.kind, item.signature) for item in found.mismatches] == [(DIFFERS_FROM_TOSA, "REDUCE_MIN")]


def test_a_step_that_writes_into_a_join_makes_the_operand():
    graph = TosaGraph("u55")
    x, y = graph.input((1, 8, 8, 4), "INT8"), graph.input((1, 8, 8, 4), "INT8")
    pooled = graph.add(
        "MAX_POOL2D", [x], x.shape, "INT8", Kernel=(3, 3), Stride=(1, 1), Pad=(1, 1, 1, 1), NanMode=PROPAGATE
    )
    graph.add("CONCAT", [pooled, y], (1, 16, 8, 4), "INT8", Axis=1)
    tosa = to_flatbuffer(graph.program())
    made = tensors_of_steps(
        tosa, compile_flatbuffer(tosa, "ethos-u55-128"), "ethos-u55-128", random_draws(tosa, 1, 0)[0]
    )
    assert pooled.name in made.values()


def test_what_the_steps_make_is_known_up_to_where_a_stream_stops(delegate):
    target, tosa, given = delegate
    [draw] = random_draws(tosa, 1, 0)
    whole = tensors_of_steps(tosa, given, target, draw)
    last = max(whole)
    stopping = altered(given, target, last, "SET_OFM_BASE0", 1 << 20)
    assert whole
    assert tensors_of_steps(tosa, stopping, target, draw) == {at: name for at, name in whole.items() if at < last}
