"""Recurrent cells over a sequence, which upstream takes apart, a step at a time.

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

MOST_STEPS = 4
MOST_FEATURES = 8
GATES = {"lstm": 4, "gru": 3}


def _operands(kind: str, sequence: Shape, attributes: Attributes) -> list[Shape]:
    """Shapes of the state and the weights of one layer, in torch's order."""
    batch, _, features = sequence
    hidden, output = attributes["hidden"], attributes["projection"] or attributes["hidden"]
    rows = GATES[kind] * hidden
    shapes: list[Shape] = [(1, batch, output)]
    if kind == "lstm":
        shapes.append((1, batch, hidden))
    shapes += [(rows, features), (rows, output)]
    if attributes["bias"]:
        shapes += [(rows,), (rows,)]
    if attributes["projection"]:
        shapes.append((output, hidden))
    return shapes


def _states(kind: str) -> int:
    return 2 if kind == "lstm" else 1


def _recurrent(kind: str, state: str) -> Operator:
    def infer(types: Types, attributes: Attributes) -> tuple[TensorType, ...]:
        hidden, projection = integer(attributes, "hidden"), integer(attributes, "projection")
        flag(attributes, "bias")
        require(hidden >= 1, f"hidden is {hidden}, not a positive number")
        require(0 <= projection < hidden, f"projection {projection} is not from 0 to below {hidden}")
        require(kind == "lstm" or not projection, f"a {kind} has no projection")
        require(len(types) > 0 and types[0].rank == 3, "takes a sequence of rank 3")
        wanted = _operands(kind, types[0].shape, attributes)
        shapes = floats(types, 1 + len(wanted))
        for have, want in zip(shapes[1:], wanted, strict=True):
            if have != want:
                raise ShapeError(f"state or weight {list(have)} is not {list(want)}")
        batch, steps, _ = shapes[0]
        kept = shapes[1 : 1 + _states(kind)]
        return (TensorType((batch, steps, projection or hidden)), *map(TensorType, kept))

    def draw_operands(draw: Draw, pool: Pool, name: str) -> Choice:
        hidden = draw(st.sampled_from((2, 4, 3)))
        attributes: Attributes = {
            "hidden": hidden,
            "projection": hidden - 1 if kind == "lstm" and one_in(draw, 4) else 0,
            "bias": draw(st.sampled_from([True, True, False])),
        }
        wanted = _operands(kind, pool.type_of(name).shape, attributes)
        kept = [pool.operand(TensorType(shape)) for shape in wanted[: _states(kind)]]
        return Choice((name, *kept, *map(pool.draw_constant, wanted[_states(kind) :])), attributes)

    def call(operands: Sequence[str], attributes: Attributes, types: Types) -> str:
        count = 1 + _states(kind)
        kept = operands[1] if count == 2 else f"({', '.join(operands[1:count])})"
        flags = f"{attributes['bias']!r}, 1, 0.0, False, False, True"
        return f"torch.{kind}({operands[0]}, {kept}, [{', '.join(operands[count:])}], {flags})"

    return Operator(
        kind,
        f"aten::{kind}.input(Tensor input, {state}, Tensor[] params, bool has_biases, …) of one layer, batch first",
        lambda type_: (
            is_float(type_)
            and type_.rank == 3
            and 1 <= type_.shape[1] <= MOST_STEPS
            and type_.shape[2] <= MOST_FEATURES
        ),
        draw_operands,
        infer,
        call=call,
        attributes={
            "hidden": "size of the state",
            "projection": "size that an output is projected to, or 0",
            "bias": "has two biases",
        },
        tags=frozenset({"product", "narrow"}),
    )


OPERATORS = (_recurrent("lstm", "Tensor[] hx"), _recurrent("gru", "Tensor hx"))
