"""What an operator entry is: signature, shape rule, strategy and source text in one place.

``generators.ops`` holds the entries, one module a family; ``harness.case.registry`` finds them. The
source text is the builder: a module is built by executing the text that the repro script will
show (``harness.case.building``), so the two cannot drift apart.

Words: *operands* are the tensor inputs of a node, *attributes* its other arguments (JSON data).
A shape rule maps operand types and attributes to result types and raises ``ShapeError`` with a
sentence where they do not fit; it must accept exactly what torch accepts within its attributes.

Invariants: ``draw`` returns only what ``infer`` accepts (``tests/unit`` checks every entry), and
attribute values are JSON scalars or lists of them, so that ``repr`` of one is its source text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.case.case import Attributes, TensorType

Types = Sequence[TensorType]


class ShapeError(ValueError):
    """The operands' types and the attributes do not fit each other (one sentence why)."""


class Draw(Protocol):
    """Hypothesis' ``draw``: takes a strategy, returns a value."""

    def __call__(self, strategy: Any, /) -> Any: ...


class Pool(Protocol):
    """What an operator's strategy may use of the graph drawn so far.

    ``operand`` returns the name of a value of exactly this type: one that exists already, or a
    new input, or a new constant (``constants=False`` forbids the last). ``draw_constant`` returns
    the name of a new float constant, such as a weight. ``indices`` returns the
    name of an integer input, or of a constant whose values are from 0 to below a bound.
    """

    def type_of(self, name: str) -> TensorType: ...

    def operand(self, wanted: TensorType, *, constants: bool = True) -> str: ...

    def draw_constant(self, shape: tuple[int, ...]) -> str: ...

    def indices(self, wanted: TensorType, below: int) -> str: ...


@dataclass(frozen=True)
class Choice:
    """What a strategy chose for one node: its operands, in order, and its attributes."""

    inputs: tuple[str, ...]
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True)
class Operator:
    """One operator that a case may contain.

    :param name: the word in ``Node.operator``.
    :param signature: the ATen signature, for people (``aten::relu(Tensor self) -> Tensor``).
    :param attributes: every attribute that a node must have, with a word on its meaning.
    :param accepts: can the strategy start from a value of this type?
    :param draw: ``draw(draw, pool, name)`` chooses further operands and the attributes, given
        the name of a value that ``accepts`` took as the first operand.
    :param infer: the shape rule.
    :param call: ``call(operands, attributes, types)``: a Python expression, given the operands' expressions.
    :param module: ``module(types, attributes)``: constructor of the submodule that holds the
        operator's weights; the node is then called as ``self.<name>(operands…)``.
    :param below: ``below(types, attributes)``: for each operand the bound below which its integers
        must stay (an index into a dimension: its size), or None.
    :param tags: families that motifs and the census ask for ("activation", "layout", …).
    """

    name: str
    signature: str
    accepts: Callable[[TensorType], bool]
    draw: Callable[[Draw, Pool, str], Choice]
    infer: Callable[[Types, Attributes], tuple[TensorType, ...]]
    call: Callable[[Sequence[str], Attributes, Types], str] | None = None
    module: Callable[[Types, Attributes], str] | None = None
    below: Callable[[Types, Attributes], tuple[int | None, ...]] | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if (self.call is None) == (self.module is None):
            raise ValueError(f"operator {self.name}: give exactly one of call and module")


def require(condition: bool, sentence: str) -> None:
    """Raise ``ShapeError(sentence)`` unless ``condition`` holds."""
    if not condition:
        raise ShapeError(sentence)
