"""Shape rules at their borders: each accepts exactly what torch accepts, and gives torch's shapes.

Two ways to get there: attributes around the known borders (``BORDERS``), and what an entry's own
strategy draws with one number of it disturbed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import nn

from generators.sizes import pick
from harness.case.case import Graph, Node, TensorType
from harness.case.checking import value_types
from harness.case.operators import Operator, ShapeError
from harness.case.registry import operators
from tests.unit.test_operators import quick, single_nodes

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, ZeroDivisionError, AssertionError)


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def call_in_torch(entry: Operator, types: list[TensorType], attributes: dict[str, Any]) -> Any:
    """Run the entry's source text on zeros, whether or not its shape rule would let it pass."""
    scope: dict[str, Any] = {"torch": torch, "F": F, "nn": nn}
    for place, type_ in enumerate(types):
        scope[f"a{place}"] = torch.zeros(type_.shape, dtype=getattr(torch, type_.dtype))
    names = [f"a{place}" for place in range(len(types))]
    if entry.name == "split":  # its text asks the shape rule how many parts there are
        text = f"torch.split(a0, {attributes['sizes']!r}, dim={attributes['dim']!r})"
    elif entry.name == "chunk":
        text = f"torch.chunk(a0, {attributes['chunks']!r}, dim={attributes['dim']!r})"
    elif entry.module is not None:
        text = f"{entry.module(types, attributes)}({', '.join(names)})"
    else:
        assert entry.call is not None
        text = entry.call(names, attributes, types)
    with torch.no_grad():
        return eval(text, scope)


def both_answers(
    entry: Operator, types: list[TensorType], attributes: dict[str, Any]
) -> tuple[list[tuple[int, ...]] | None, list[tuple[int, ...]] | None]:
    """Result shapes by the entry's rule and by torch; None where they refuse."""
    try:
        ours = [result.shape for result in entry.infer(types, attributes)]
    except ShapeError:
        ours = None
    assume(ours is None or all(TensorType(shape).elements <= 1_000_000 for shape in ours))
    try:
        result = call_in_torch(entry, types, attributes)
    except REFUSALS:
        return ours, None
    return ours, [tuple(item.shape) for item in ([result] if isinstance(result, torch.Tensor) else result)]


def disturbed(draw: Any, entry: Operator, types: list[TensorType], attributes: dict[str, Any]) -> None:
    """Change one number of the attributes, or one size of one operand, in place."""
    lists: list[tuple[Any, Any]] = [(attributes, key) for key, value in attributes.items() if is_integer(value)]
    for value in attributes.values():
        if isinstance(value, list):
            lists += [(value, place) for place, item in enumerate(value) if is_integer(item)]
    if lists and (entry.module is not None or draw(st.booleans())):
        holder, key = pick(draw, lists)
        holder[key] += draw(st.sampled_from([1, -1, 2, -2, -3]))
        return
    place = draw(st.integers(0, len(types) - 1))
    shape = types[place].shape
    form = draw(st.sampled_from(["grow", "drop", "add"]))
    if form == "grow" and shape:
        axis = draw(st.integers(0, len(shape) - 1))
        shape = (*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])
    types[place] = TensorType({"grow": shape, "drop": shape[1:], "add": (2, *shape)}[form], types[place].dtype)


def grid(**choices: Iterable[Any]) -> list[dict[str, Any]]:
    """Attributes in every combination of these choices."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def squares(attributes: list[dict[str, Any]], **fixed: Any) -> list[dict[str, Any]]:
    """Every integer that is not a count of its own, once for each spatial dimension."""
    return [
        {key: [value] * 2 if is_integer(value) else value for key, value in row.items()} | fixed for row in attributes
    ]


SQUARES = [[(1, 2, size, size)] for size in (1, 2, 3, 5, 8)]
FIRSTS = [(3,), (2, 3), (2, 2, 3), (4, 1, 2, 3)]
SECONDS = [(3,), (3, 2), (2, 3, 2), (2,), (3, 3, 2)]

# operator: lists of operand shapes, and attributes; all combinations run
BORDERS: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "max_pool2d": (
        SQUARES,
        squares(
            grid(kernel=(2, 3, 4), stride=(None, 1, 3), padding=(0, 1, 2), dilation=(1, 2, 3), ceil_mode=(True, False))
        ),
    ),
    "avg_pool2d": (
        SQUARES,
        squares(
            grid(kernel=(2, 3), stride=(None, 1, 4), padding=(0, 1, 2), ceil_mode=(True, False)), count_include_pad=True
        ),
    ),
    "conv2d": (
        SQUARES,
        squares(
            grid(kernel=(1, 3), stride=(1, 2), padding=(0, 2), dilation=(1, 2)), groups=2, out_channels=4, bias=True
        ),
    ),
    "conv_transpose2d": (
        SQUARES,
        squares(
            grid(kernel=(1, 3), stride=(1, 2), padding=(0, 1, 2), dilation=(1, 2), output_padding=(0, 1, 2)),
            groups=1,
            out_channels=2,
            bias=False,
        ),
    ),
    "flatten": ([[(2, 3, 4)]], grid(start=range(-4, 4), end=range(-4, 4))),
    "slice": ([[(5,)]], grid(dim=(0, -1, 1), start=(None, 0, 2, -2, -9), stop=(None, 3, 9, -1), step=(1, 2, 7))),
    "squeeze": ([[(1, 3, 1)]], grid(dim=(None, 0, 1, -1, 3, -4, [0, 2], [0, 0], [0, 1], []))),
    "expand": ([[(1, 3)]], grid(shape=([-1, 3], [2, -1], [2, 1, 3], [-1, 1, 3], [3], [2, 2]))),
    "repeat": ([[(2, 3)]], grid(repeats=([1, 1], [1], [2, 1, 1], [1, 1, 1]))),
    "view": ([[(2, 6)]], grid(shape=([12], [-1, 4], [-1, 5], [3, 4, 1], [2, -1, -1], [-2, 6]))),
    "split": ([[(2, 5)]], grid(sizes=(1, 2, 5, 6, 0, [2, 3], [5], [2, 2], [6, -1]), dim=(1, -1))),
    "chunk": ([[(2, 5)]], grid(chunks=(1, 2, 3, 4, 5, 7, 0), dim=(1, -1))),
    "mean": ([[(2, 3)]], grid(dims=(None, [], [0], [-1, 0], [0, -2], [2]), keepdim=(True, False))),
    "softmax": ([[(2, 3)]], grid(dim=range(-4, 4))),
    "adaptive_avg_pool2d": (
        [[(4, 4)], [(2, 4, 4)], [(1, 2, 4, 4)], [(1, 1, 2, 4, 4)]],
        grid(output=([1, 1], [3, 2], [6, 6])),
    ),
    "matmul": ([[left, right] for left in FIRSTS for right in SECONDS], [{}]),
    "cat": ([[(2, 3), (2, 3)], [(2, 3), (2, 4)], [(2, 3), (1, 2, 3)], [(2, 3)]], grid(dim=range(-3, 3))),
    "pad": ([[(2, 3)]], grid(pad=([1, 0], [0, 1, 2, 0], [-1, 0], [-3, -1], [1], [0, 0, 0, 0, 1, 1]), value=(0.5,))),
}


@pytest.mark.parametrize("name", sorted(BORDERS))
def test_shape_rule_has_torchs_borders(name: str) -> None:
    operands, attributes = BORDERS[name]
    outcomes = set()
    for shapes in operands:
        for chosen in attributes:
            ours, theirs = both_answers(operators()[name], [TensorType(shape) for shape in shapes], chosen)
            if not any(0 in shape for shape in theirs or ()):  # a case holds no empty tensor
                assert ours == theirs, (shapes, chosen)
                outcomes.add(theirs is None)
    assert outcomes == {True, False}


UNCHECKED = {"lstm"}
"""torch does not compare shapes of a cell's weights: it dies, or reads what lies behind them."""


@pytest.mark.parametrize("name", sorted(operators().keys() - UNCHECKED))
def test_shape_rule_refuses_what_torch_refuses(name: str) -> None:
    entry = operators()[name]

    @quick(60)
    @given(single_nodes(entry), st.data())
    def check(drawn: tuple[Graph, Node], data: st.DataObject) -> None:
        graph, node = drawn
        known = value_types(graph)
        types, attributes = [known[name] for name in node.inputs], copy.deepcopy(node.attributes)
        disturbed(data.draw, entry, types, attributes)
        assume(all(type_.elements <= 20_000 for type_ in types))
        ours, theirs = both_answers(entry, types, attributes)
        # torch's kernels differ on results without elements; a case cannot hold them (harness.case.checking)
        assume(not any(0 in shape for answer in (ours, theirs) for shape in answer or ()))
        assert ours == theirs, (types, attributes)

    check()
