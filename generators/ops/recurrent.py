"""An LSTM over a sequence of few steps: upstream takes it apart, a step at a time.

A sequence has the shape (batch, steps, features). State and weights are operands, the weights constants, since
they are what quantization and folding see. The first result is the output of every step, the others are the
state after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from generators.rules import Shape, flag, floats, integer, is_float
from generators.sizes import one_in
from harness.case.case import Attributes, TensorType
from harness.case.operators import Choice, Draw, Operator, Pool, ShapeError, Types, require

MOST_STEPS = 2
"""A step is some twenty operators, and lowering takes longer than in proportion."""
MOST_FEATURES = 8
_STATES = 2


def _operands(sequence: Shape, attributes: Attributes) -> list[Shape]:
    """Shapes of the state and the weights of one layer, in torch's order."""
    batch, _, features = sequence
    hidden, output = attributes["hidden"], attributes["projection"] or attributes["hidden"]
    rows = 4 * hidden
    shapes: list[Shape] = [(1, batch, output), (1, batch, hidden), (rows, features), (rows, output)]
    if attributes["bias"]:
        shapes += [(rows,), (rows,)]
    if attributes["projection"]:
        shapes.append((output, hidden))
    return shapes


def _infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
    hidden, projection = integer(attributes, "hidden"), integer(attributes, "projection")
    flag(attributes, "bias")
    require(hidden >= 1, f"hidden is {hidden}, not a positive number")
    require(0 <= projection < hidden, f"projection {projection} is not from 0 to below {hidden}")
    require(len(types) > 0 and types[0].rank == 3, "takes a sequence of rank 3")
    wanted = _operands(types[0].shape, attributes)
    sequence, *others = floats(types, 1 + len(wanted))
    for have, want in zip(others, wanted, strict=True):
        if have != want:
            raise ShapeError(f"state or weight {list(have)} is not {list(want)}")
    batch, steps, _ = sequence
    return (TensorType((batch, steps, projection or hidden)), *map(TensorType, others[:_STATES]))


def _draw(draw: Draw, pool: Pool, name: str) -> Choice:
    hidden = draw(st.sampled_from((2, 4, 3)))
    attributes: Attributes = {
        "hidden": hidden,
        "projection": hidden - 1 if one_in(draw, 4) else 0,
        "bias": draw(st.sampled_from([True, True, False])),
    }
    wanted = _operands(pool.type_of(name).shape, attributes)
    kept = [pool.operand(TensorType(shape)) for shape in wanted[:_STATES]]
    return Choice((name, *kept, *map(pool.draw_constant, wanted[_STATES:])), attributes)


def _call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
    sequence, hidden, cell, *weights = operands
    flags = f"{attributes['bias']!r}, 1, 0.0, False, False, True"
    return f"torch.lstm({sequence}, ({hidden}, {cell}), [{', '.join(weights)}], {flags})"


OPERATORS = (
    Operator(
        "lstm",
        "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, …) of one layer, batch first",
        lambda type_: (
            is_float(type_)
            and type_.rank == 3
            and 1 <= type_.shape[1] <= MOST_STEPS
            and type_.shape[2] <= MOST_FEATURES
        ),
        _draw,
        _infer,
        call=_call,
        attributes={
            "hidden": "size of the state",
            "projection": "size that an output is projected to, or 0",
            "bias": "has two biases",
        },
        tags=frozenset({"product", "narrow"}),
    ),
)
