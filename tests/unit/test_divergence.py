"""Comparing payloads with TOSA graphs, on hand-made streams and tensors: neither Vela nor the reference model runs."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import pytest

from harness.artifacts.tosa import TosaBlock
from harness.ethosu import machine
from harness.ethosu.commands import decode_commands
from harness.ethosu.featuremap import FeatureMap, addresses, write
from harness.ethosu.memory import Memory
from harness.ethosu.npu import Npu
from harness.ethosu.records import Command
from harness.locate.divergence import explaining, origin
from harness.locate.divergence.difference import difference, where
from harness.locate.divergence.explaining import Run, explain
from harness.locate.divergence.matching import LINEAR, Catalogue, Layout, Placement, view, views
from harness.locate.divergence.origin import Origin, find_origin
from harness.locate.divergence.replaying import Move, Player, Store, program_of
from harness.locate.divergence.stored import Stored
from harness.locate.divergence.tracing import Owners, trace
from tests.unit.artifacts import block, value
from tests.unit.ethosu.assembling import STOP, U55, Commands, feature_map, io, kernel, ofm, operation, payload

SHAPE = (2, 4, 8)
X, A, B, OUT = 0, 64, 128, 192
NAMES = ("x", "a", "b", "out")


def step(source: int, target: int, **changes: Any) -> Commands:
    """A copy of 64 bytes, to which OFM_ZERO_POINT adds."""
    maps = {**feature_map("IFM", SHAPE, source), **ofm(U55, SHAPE, target)}
    return operation(U55, "OP_POOL", 1, {**maps, "IFM_DEPTH_M1": SHAPE[2] - 1, **kernel(), **changes})


def _chain(*changes: dict[str, Any]) -> list[Commands]:
    """x -> a = x + 3 -> b = a + 5 -> out = b + 7, with changed registers for some of the steps."""
    given = [*changes, {}, {}, {}][:3]
    places = ((X, A, 3), (A, B, 5), (B, OUT, 7))
    return [
        step(source, target, **{"OFM_ZERO_POINT": add, **more})
        for (source, target, add), more in zip(places, given, strict=True)
    ]


def _graph() -> TosaBlock:
    tensors = [value(name, (1, *SHAPE)) for name in NAMES]
    return block(["x"], ["out"], [("ADD", (one,), (two,), {}) for one, two in itertools.pairwise(NAMES)], tensors)


def _runs(steps: list[Commands], hidden: tuple[str, ...] = ()) -> list[Run]:
    commands = [*(command for step in steps for command in step), STOP]
    made = payload(U55, commands, [io(SHAPE, X)], [io(SHAPE, OUT)], scratch=512)
    program = program_of(made, decode_commands(made.commands, U55), U55)
    assert program is not None
    runs = []
    for seed in range(2):
        x = np.random.default_rng(seed).integers(-50, 50, (1, *SHAPE), dtype=np.int8)
        values = {name: x + np.int8(add) for name, add in zip(NAMES, (0, 3, 8, 15), strict=True)}
        shown = {name: array for name, array in values.items() if name not in hidden}
        runs.append(Run(f"draw {seed}", Player(program, [x]), [values["out"]], shown))
    return runs


def _origin(steps: list[Commands], hidden: tuple[str, ...] = ()) -> Origin:
    return find_origin(_graph(), _runs(steps, hidden))


def _other_reader() -> Commands:
    """Reads a; nothing reads what it stores."""
    return step(A, 320)


@pytest.mark.parametrize(("step", "tensor"), [(0, "a"), (1, "b"), (2, "out")])
@pytest.mark.parametrize("change", [{"OFM_ZERO_POINT": 4}, {"ACTIVATION_MAX": 20}])
def test_the_step_with_a_wrong_value_is_the_origin(step: int, tensor: str, change: dict[str, Any]) -> None:
    changes = [change if index == step else {} for index in range(3)]
    found = _origin(_chain(*changes))
    assert (found.step, found.earliest, found.doubt) == (step, step, "")
    assert (found.tensor, found.tosa_operator, found.of) == (tensor, "ADD", 64)
    assert found.operation == "POOL AVERAGE"
    assert any(line.startswith("> ") and f"{found.offset:06x}" in line for line in found.listing)


def test_how_many_elements_a_step_got_wrong() -> None:
    [run, *_] = _runs(_chain())
    found = _origin(_chain({}, {"ACTIVATION_MAX": 20}))
    assert found.draw == "draw 0"
    assert found.elements == int((run.values["b"] > 20).sum())


def test_a_result_in_the_wrong_place() -> None:
    found = _origin([*_chain({"OFM_BASE0": A + 384}), _other_reader()])
    assert (found.step, found.tensor, found.repair) == (0, "a", "OFM_BASE moved by -384 bytes")
    assert (found.earliest, found.latest) == (0, 1)
    assert "steps 0 and 1 disagree about an address" in found.doubt


def test_an_operand_from_the_wrong_place() -> None:
    found = _origin([*_chain({}, {"IFM_BASE0": A + 8}), _other_reader()])
    assert (found.step, found.tensor, found.repair) == (1, "b", "IFM_BASE moved by -8 bytes")
    assert found.earliest == 1 or "steps 0 and 1 disagree about an address" in found.doubt


def test_what_no_tensor_shows_is_an_interval() -> None:
    found = _origin(_chain({}, {"OFM_ZERO_POINT": 4, "ACTIVATION_MAX": 30}), hidden=("b",))
    assert (found.earliest, found.step, found.tensor) == (1, 2, "out")
    assert "step 1" in found.doubt


def test_a_stripe_of_a_tensor_that_is_wrong() -> None:
    half = (1, 4, 8)
    rows = []
    for index in range(2):
        maps = {**feature_map("IFM", half, X + 32 * index), **ofm(U55, half, A + 32 * index)}
        changes = {"OFM_ZERO_POINT": 3 + index, "IFM_DEPTH_M1": 7}
        rows.append(operation(U55, "OP_POOL", 1, {**maps, **kernel(), **changes}))
    found = _origin([*rows, *_chain()[1:]])
    assert (found.step, found.tensor, found.elements, found.doubt) == (1, "a", 32, "")


def test_two_defects_are_told_output_by_output() -> None:
    commands = [*step(X, B, OFM_ZERO_POINT=9), *step(X, OUT, OFM_ZERO_POINT=16), STOP]
    made = payload(U55, commands, [io(SHAPE, X)], [io(SHAPE, B), io(SHAPE, OUT)], scratch=512)
    program = program_of(made, decode_commands(made.commands, U55), U55)
    assert program is not None
    [run, *_] = _runs(_chain())
    values = {name: run.values[name] for name in ("x", "b", "out")}
    graph = block(
        ["x"], ["b", "out"], [("ADD", ("x",), (name,), {}) for name in ("b", "out")], _graph().tensors.values()
    )
    wanted = [values["b"], values["out"]]
    for output, name in enumerate(("b", "out")):
        found = find_origin(graph, [Run("draw", Player(program, [values["x"]]), wanted, values, output)])
        assert (found.step, found.tensor, found.elements, found.doubt) == (output, name, 64, "")


def test_outputs_of_a_draw_share_one_look_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(explaining, "_once", lambda run, once=explaining._once: looked.append(run.draw) or once(run))
    runs = _runs(_chain({"OFM_ZERO_POINT": 4}))
    told = [find_origin(_graph(), runs), find_origin(_graph(), [run.of_output(0) for run in runs])]
    assert looked == ["draw 0", "draw 1"]
    assert told[0] == told[1] == _origin(_chain({"OFM_ZERO_POINT": 4}))


def test_what_one_output_notes_is_not_known_to_the_next() -> None:
    [run, _] = _runs(_chain())
    for _ in range(3):
        known = explain([run.of_output(0)])
        assert (known.owners.holes.get(1, set()), known.copies) == (set(), set())
        known.owners.note_hole(1, np.array([5]))
        known.copies.add(77)
        run.looks[0][0].owners.holes.setdefault(1, set())


def test_what_cannot_be_matched_is_said_to_be_unknown() -> None:
    found = _origin(_chain({"OFM_ZERO_POINT": 4}, {"OFM_ZERO_POINT": 6}), hidden=("a", "b", "out"))
    assert (found.step, found.earliest, found.latest) == (None, 0, 2)
    assert "3 steps from 0 to 2" in found.doubt
    assert found.listing


def test_a_stream_with_too_many_places_for_its_results_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _chain({}, {}, {"OFM_ZERO_POINT": 4})
    assert _origin(steps).step == 2
    monkeypatch.setattr(explaining, "MOST_PLACEMENTS", 0)
    found = _origin(steps)
    assert (found.step, found.draw) == (None, "draw 0")
    assert found.doubt == "more than 0 places fit the results of its 3 steps"


def test_a_stream_with_a_branch_cannot_be_divided_into_steps() -> None:
    made = payload(U55, [*_chain()[0], STOP])
    commands = decode_commands(made.commands, U55)
    assert program_of(made, commands, U55) is not None
    [*_, operator, stop] = commands
    branch = type(operator)(operator.offset, (), "OP_BRANCH", {})
    assert program_of(made, [branch, stop], U55) is None


def test_corrections_end_with_their_step() -> None:
    [run, *_] = _runs(_chain())
    right = run.player.outputs({})
    moved = run.player.outputs({0: Move("OFM", 256)})
    stored = run.player.outputs({1: Store(lambda values, _: values * 0)})
    again = run.player.outputs({})
    assert right is not None
    assert moved is not None
    assert stored is not None
    assert again is not None
    assert right[0].ravel().tolist() == run.wanted[0].ravel().tolist() == again[0].ravel().tolist()
    assert moved[0].ravel().tolist() != run.wanted[0].ravel().tolist()  # what nothing wrote was read in its place
    assert stored[0].ravel().tolist() == [7] * 64
    assert run.player.outputs({2: Move("OFM", 4096)}) is None


def test_only_steps_that_a_correction_reaches_are_executed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [*_chain(), _other_reader(), step(X, 384)]
    [fresh, *_], [run, *_] = _runs(steps), _runs(steps)
    explaining.explain([run])
    places = {commands[-1].offset: index for index, commands in enumerate(run.player.program.operations)}
    executed: list[int] = []
    operate = machine.operate

    def noted(npu: Npu, command: Command) -> None:
        executed.append(places[command.offset])
        operate(npu, command)

    monkeypatch.setattr(machine, "operate", noted)
    for corrections, reached in (
        ({1: Store(lambda values, _: values * 0)}, [1, 2]),
        ({0: Move("OFM", 256)}, [0, 1, 2, 3]),
        ({3: Move("OFM", OUT - 320)}, [3]),
        ({}, []),
    ):
        wanted = fresh.player.outputs(corrections)
        executed.clear()
        got = run.player.outputs(corrections)
        assert executed == reached
        assert wanted is not None
        assert got is not None
        assert got[0].tolist() == wanted[0].tolist()


def test_who_wrote_and_who_read() -> None:
    [run, *_] = _runs(_chain({"OFM_BASE0": A + 16}))
    seen: dict[int, Stored] = {}
    owners: list[Owners] = []

    def observe(_: Memory, current: Owners, stored: Stored) -> None:
        seen[stored.index] = stored
        owners.append(current)

    trace(run.player, observe)
    assert [sorted(stored.sources) for stored in seen.values()] == [[], [0], [1]]
    assert owners[-1].of(1, slice(OUT, OUT + 64)) == {2}
    assert owners[-1].holes == {1: {(A, A + 16)}}
    assert sorted(owners[-1].idle[0]) == [*range(B, B + 16)]
    assert owners[-1].clobbers == {1}


def _map(**changes: Any) -> FeatureMap:
    settings: dict[str, Any] = {
        "role": "OFM",
        "region": 1,
        "bases": (0, 512, 1024, 1536),
        "height": 3,
        "width": 5,
        "depth": 20,
    }
    settings |= {"height0": 3, "height1": 3, "width0": 5, "stride_y": 640, "stride_x": 40, "stride_c": 160}
    settings |= {"bits": 16, "signed": True, "bricks": False}
    return FeatureMap(**{**settings, **changes})


@pytest.mark.parametrize("changes", [{}, {"bricks": True}, {"height0": 2, "height1": 1, "width0": 3, "stride_y": 200}])
def test_addresses_are_where_elements_are_stored(changes: dict[str, Any]) -> None:
    memory, item = Memory(b"", 4096, 0, 0), _map(**changes)
    values = np.random.default_rng(0).integers(-9999, 9999, item.shape)
    write(memory, item, values)
    data = memory.region(1).data
    at = addresses(item)
    assert (data[at] + 256 * data[at + 1].astype(np.int64) == values & 0xFFFF).all()


@pytest.mark.parametrize("layout", [LINEAR, Layout(stride_y=192, stride_c=96, width=3, depth=20)])
def test_placements_find_their_elements(layout: Layout) -> None:
    array = np.arange(120, dtype=np.int16).reshape(2, 3, 20)
    placed = Placement(view("t", array, 2, "converted"), 1, 32, layout)
    index, inside = placed.elements(placed.addresses)
    assert inside.all()
    assert index.tolist() == list(range(120))
    assert not placed.elements(np.array([31, 33, placed.end]))[1].any()
    data = np.zeros(512, np.uint8)
    data[placed.addresses] = array.ravel()
    assert placed.holds(data)
    data[placed.addresses[70]] ^= 1
    assert not placed.holds(data)
    assert not placed.holds(data[: placed.end - 1])


@pytest.mark.parametrize("least", [1.0, 0.5])
@pytest.mark.parametrize("strides", [None, (64, 64)])
def test_placements_are_those_that_a_look_at_every_pair_finds(least: float, strides: tuple[int, int] | None) -> None:
    random = np.random.default_rng(5)
    whole = random.integers(0, 2, 96).astype(np.int8)
    parts = {f"t{size}": whole[:size] if size % 3 else whole[-size:] for size in (1, 3, 8, 24, 40, 48, 64, 96)}
    anchors = {1: [0, 8, 16, 20, 24, 60]}
    met = 0
    for begin, count in ((24, 4), (32, 8), (60, 2), (4, 1)):
        addresses = begin + np.arange(count)
        stored = Stored(
            cast(Any, None), 1, addresses, 1, whole[addresses - 24 if begin >= 24 else addresses], strides=strides
        )
        layouts = [LINEAR] if strides is None else [Layout(64, 64, 4, depth) for depth in range(1, 17)]
        expected = []
        for layout, (name, values), kind, start in itertools.product(
            layouts, parts.items(), ("converted", "complement"), anchors[1]
        ):
            placed = Placement(view(name, values, 1, kind), 1, start, layout)
            wanted, inside = placed.expected(stored)
            if start <= begin and inside.all() and values.size % max(layout.width * layout.depth, 1) == 0:
                share = float((wanted.astype(np.int8) == stored.values).mean())
                expected += [(share, name, kind, start, layout)] if share >= least else []
        found = Catalogue(parts, anchors).placements(stored, least)
        told = [
            (c.share, c.placement.view.tensor, c.placement.view.kind, c.placement.start, c.placement.layout)
            for c in found
        ]
        assert told == expected
        met += len(told)
    assert met


def test_views_of_a_tensor() -> None:
    small, wide = np.array([-1, 5], np.int32), np.array([-1, 70000], np.int32)
    found = {(item.kind, item.size): item.values.tolist() for size in (1, 2) for item in views("t", small, size)}
    assert found[("converted", 1)] == [255, 5]
    assert found[("complement", 1)] == [0, 250]
    assert found[("bytes", 2)] == [65535, 65535, 5, 0]
    assert {item.kind for item in views("t", wide, 2)} == {"bytes"}  # it does not fit
    flags = {item.kind: item.values.tolist() for item in views("t", np.array([True, False]), 1)}
    assert flags == {"converted": [1, 0], "mask": [255, 0]}


def test_a_difference_names_the_worst_element_and_the_first() -> None:
    reference = np.zeros((2, 3), np.int8)
    model = np.array([[0, 1, 0], [0, -7, 7]], np.int8)
    found = difference(1, model, reference, "calibration 0")
    assert found is not None
    assert (found.output, found.elements, found.of, found.draw) == (1, 3, 6, "calibration 0")
    assert (found.at, found.model, found.reference, found.largest) == ((1, 1), -7, 0, 7)
    assert found.smallest_set == (((0, 1), 1, 0), ((1, 1), -7, 0), ((1, 2), 7, 0))
    assert found.where == "3 of the 4 in [0..1, 1..2]"
    assert difference(1, reference, reference, "") is None


def test_a_difference_of_booleans_and_of_a_scalar() -> None:
    found = difference(0, np.array(True), np.array(False), "")
    assert found is not None
    assert (found.at, found.model, found.reference, found.where) == ((), 1, 0, "all")


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([(0, 0)], "all in [0, 0]"),
        ([(0, 2), (0, 3), (1, 2), (1, 3)], "all in [0..1, 2..3]"),
        ([(3, 0), (3, 2), (3, 4)], "all in [3, 0..4 step 2]"),
        ([(0, 0), (0, 1), (0, 4)], "all in [0, 3 of 0..4]"),
        ([(0, 0), (1, 1)], "2 of the 4 in [0..1, 0..1]"),
    ],
)
def test_where_elements_are(places: list[tuple[int, int]], text: str) -> None:
    wrong = np.zeros((4, 6), np.bool_)
    for place in places:
        wrong[place] = True
    assert where(wrong) == text


def test_where_no_correction_helps_the_search_ends_with_its_trials(monkeypatch):
    """A payload of some hundred steps took more than five minutes (a drawn graph, 2026-11-23)."""
    asked = []

    class Hopeless:
        """Suspects without end; three trials are left."""

        known = None
        exhausted = property(lambda _: len(asked) >= 3)

        def new_round(self):
            asked.clear()

        def improving(self, guesses):
            return None

    monkeypatch.setattr(origin, "_suspects", lambda trials, roots: range(100))
    monkeypatch.setattr(origin, "value_guesses", lambda known, index: asked.append(index))
    assert origin._partial(_graph(), Hopeless(), []) is None
    assert asked == [0, 1, 2]
