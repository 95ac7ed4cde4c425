"""Random inputs for comparing a payload with its TOSA graph: such that what TOSA defines is asked, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.artifacts.tosa import TosaGraph
from harness.case.errors import BadInput
from harness.locate.divergence import comparing
from harness.locate.divergence.draws import Draw, random_draws
from harness.pipeline.legs.tosa_reference import ReferenceModelError
from tests.unit.artifacts import block, constant, value
from tests.unit.ethosu.assembling import STOP, U55, io, payload
from tests.unit.test_divergence import step


class _Plain:
    """Inputs that are passed on as they are."""

    def payload_inputs(self, arrays: Any) -> Any:
        return arrays


def test_random_draws_are_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph_of(dtype: str) -> TosaGraph:
        return TosaGraph((1, 0, 0), (block(["x"], ["x"], [], [value("x", (3, 5), dtype)]),))

    for dtype, expected in (("BOOL", np.bool_), ("INT8", np.int8), ("INT32", np.int32), ("INT48", np.int64)):
        monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _, dtype=dtype: graph_of(dtype))
        for draw in random_draws(b"", 2, 0):
            [array] = draw.arrays
            assert (array.dtype, array.shape) == (expected, (3, 5))
            assert dtype != "INT48" or abs(array).max() <= 1 << 47
    monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _: graph_of("FP32"))
    with pytest.raises(BadInput, match="TOSA input x: is FP32"):
        random_draws(b"", 1, 0)


def test_random_draws_divide_by_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """INTDIV by zero, and of the lowest number by -1, kills the reference model (SIGFPE)."""

    def drawn(divisor: str) -> tuple[Draw, ...]:
        tensors = [value(name, (64,), "INT32") for name in ("x", "y", "moved", "sum", "out")]
        operators = [
            ("RESHAPE", ("y",), ("moved",), {}),
            ("ADD", ("y", "y"), ("sum",), {}),
            ("INTDIV", ("x", divisor), ("out",), {}),
        ]
        graph = TosaGraph((1, 0, 0), (block(["x", "y"], ["out"], operators, tensors),))
        monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _: graph)
        return random_draws(b"", 4, 0)

    for divisor in ("y", "moved"):
        dividends, divisors = (
            np.stack(arrays) for arrays in zip(*(draw.arrays for draw in drawn(divisor)), strict=True)
        )
        assert 0 in dividends
        assert 0 not in divisors
        assert -1 not in divisors
    assert drawn("sum") == ()


@pytest.mark.parametrize("moved", [True, False])
def test_random_indices_name_rows_that_are_there(monkeypatch: pytest.MonkeyPatch, moved: bool) -> None:
    """The reference model dies of a GATHER of a row that is not there: where indices are computed nothing is drawn."""
    tensors = [value("x", (1, 5, 2)), value("i", (2, 2), "INT32"), value("j", (1, 4), "INT32"), value("y", (1, 4, 2))]
    between = "RESHAPE" if moved else "ADD"
    operators = [(between, ["i"], ["j"]), ("GATHER", ["x", "j"], ["y"])]
    graph = TosaGraph("1.0", (block(["x", "i"], ["y"], operators, tensors),))
    monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _: graph)
    if not moved:
        assert random_draws(b"", 8, 0) == ()
        return
    found = np.concatenate([draw.arrays[1].ravel() for draw in random_draws(b"", 8, 0)])
    assert found.dtype == np.int32
    assert set(found.tolist()) == set(range(5))
    assert any(abs(int(draw.arrays[0].min())) > 5 for draw in random_draws(b"", 8, 0))


def test_random_shifts_are_by_fewer_places_than_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = [value(name, (64,), "INT32") for name in ("x", "s", "y")]
    graph = TosaGraph((1, 0, 0), (block(["x", "s"], ["y"], [("LOGICAL_LEFT_SHIFT", ["x", "s"], ["y"])], tensors),))
    monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _: graph)
    shifts = np.concatenate([draw.arrays[1] for draw in random_draws(b"", 8, 0)])
    assert set(shifts.tolist()) == set(range(32))


@pytest.mark.parametrize(
    ("operator", "scale32", "most"),
    [
        ("RESHAPE", True, (1 << 28) - 1),
        ("RESHAPE", False, 1 << 31),
        ("MAXIMUM", True, (1 << 28) - 1),
        ("REDUCE_MIN", True, (1 << 28) - 1),
        ("INTDIV", True, 1 << 31),
    ],
)
def test_random_integers_are_such_that_a_rescale_is_defined(
    monkeypatch: pytest.MonkeyPatch, operator: str, scale32: bool, most: int
) -> None:
    """The reference model dies of a TABLE of what is not."""
    tensors = [*(value(name, (64,), "INT32") for name in ("x", "moved")), constant("shifts", [29, 40]), value("y")]
    operators = [
        (operator, ["x", "multipliers"][: 1 + (operator in ("MAXIMUM", "INTDIV"))], ["moved"], {}),
        ("RESCALE", ["moved", "multipliers", "shifts", "zp", "zp"], ["y"], {"Scale32": scale32}),
    ]
    graph = TosaGraph((1, 0, 0), (block(["x"], ["y"], operators, tensors),))
    monkeypatch.setattr("harness.locate.divergence.draws.decode_tosa", lambda _: graph)
    found = np.concatenate([draw.arrays[0] for draw in random_draws(b"", 8, 0)]).astype(np.int64)
    assert (found.dtype, np.abs(found).max()) == (np.int64, most)


def test_smaller_numbers_take_the_place_of_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """TOSA does not define a sum that overflows. Of what the program was given nothing takes the place."""
    large = np.array([0, -1, 3, 1 << 18, -(1 << 31), (1 << 31) - 1], np.int32)
    monkeypatch.setattr(comparing, "payload_io", lambda *_: _Plain())
    given = payload(U55, [*step(0, 64, IFM_REGION=7), STOP], [io((6,), 0, 4)], [io((6,), 64, 4)])
    asked = []

    def defined(_: bytes, arrays: Any) -> Any:
        asked.append(arrays[0].tolist())
        if np.abs(arrays[0], dtype=np.int64).max() > 1 << 19:
            raise ReferenceModelError("TOSA_UNPREDICTABLE")
        return list(arrays)

    monkeypatch.setattr(comparing, "run_flatbuffer", defined)
    free = comparing.compare_delegate(b"", given, "ethos-u55-128", [Draw("one", (large,), free=True)])
    assert (free.refused, asked) == ((), [large.tolist(), [0, -1, 3, 1 << 18, -(1 << 13), (1 << 13) - 1]])
    kept = comparing.compare_delegate(b"", given, "ethos-u55-128", [Draw("one", (large,))])
    assert kept.refused == ("one: TOSA_UNPREDICTABLE",)


def test_a_draw_that_tosa_does_not_define_stops_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [*step(0, 64, IFM_REGION=7), STOP]
    given = payload(U55, broken, [io((4,), 0)], [io((4,), 64)])
    monkeypatch.setattr(comparing, "payload_io", lambda *_: _Plain())
    draw = Draw("one", (np.zeros(4, np.int8),))

    def refuses(*_: Any) -> Any:
        raise ReferenceModelError("TOSA_UNPREDICTABLE")

    monkeypatch.setattr(comparing, "run_flatbuffer", lambda *_: [np.zeros(4, np.int8)])
    assert comparing.compare_delegate(b"", given, "ethos-u55-128", [draw]).stopped
    monkeypatch.setattr(comparing, "run_flatbuffer", refuses)
    found = comparing.compare_delegate(b"", given, "ethos-u55-128", [draw])
    assert (found.stopped, found.refused, found.compared) == (None, ("one: TOSA_UNPREDICTABLE",), 0)
