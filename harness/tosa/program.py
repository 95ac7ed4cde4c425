"""A TOSA program as data: tensors with constants, operators with attributes, inputs and outputs.

Names and attributes are those of the TOSA 1.0 schema (``Pad``, ``Stride``, ``AccType``; enumerations are numbers), so
that a program and ``harness.artifacts.tosa.TosaOperator`` say the same. A constant belongs to its tensor: there are no
CONST operators. A shape (dtype SHAPE) is a constant like any other. Large constants are a ``Fill``: a rule and a seed,
so that a program stays small and a reducer can change shapes freely.

Pure data: JSON in both directions (``encode``, ``decode``), no numpy arrays, nothing of a flatbuffer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.case.errors import BadInput
from harness.case.traits import TOSA_EVERYWHERE

SHAPE = "SHAPE"
PROGRAM = "program"
"""What messages call the delegate, where there is nothing but a program."""
BITS = {"BOOL": 1, "INT4": 4, "INT8": 8, "INT16": 16, "INT32": 32, "INT48": 48, SHAPE: 64}
BOUNDS = ("MinVal", "MaxVal")
Attribute = int | bool | tuple[int, ...]
Rule = Literal["uniform", "normal", "sparse", "ends", "same"]


class Fill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A constant by rule: ``uniform`` in a range, ``normal`` around its middle, ``sparse`` (mostly zero), ``ends`` (its
    ends and what is near zero), ``same`` (one value everywhere).

    :param low: smallest value, inclusive; ``high``: the largest.
    """

    rule: Rule
    low: int
    high: int
    seed: int = 0

    def values(self, count: int) -> NDArray[np.int64]:
        """As many values."""
        generator = np.random.default_rng(self.seed)
        if self.rule == "same":
            return np.full(count, generator.integers(self.low, self.high, endpoint=True))
        if self.rule == "ends":
            near = np.array([self.low, self.high, *(value for value in (-1, 0, 1) if self.low <= value <= self.high)])
            return near[generator.integers(0, len(near), count)]
        if self.rule == "normal":
            middle, width = (self.low + self.high) / 2, max((self.high - self.low) / 8, 0.5)
            return np.clip(np.rint(generator.normal(middle, width, count)), self.low, self.high).astype(np.int64)
        values = generator.integers(self.low, self.high, count, dtype=np.int64, endpoint=True)
        if self.rule == "sparse":
            return np.where(generator.random(count) < 0.2, values, np.clip(0, self.low, self.high))
        return values


class Tensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tensor.

    :param dtype: the schema's name, or SHAPE.
    :param data: values of a constant, in row-major order; a rule; None for what is given or computed.
    :param span: smallest and largest value that an input may have (None: those of its dtype).
    :param distinct: an input has no value twice along its last axis (indices of SCATTER).
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    data: tuple[int, ...] | Fill | None = None
    span: tuple[int, int] | None = None
    distinct: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def constant(self) -> bool:
        return self.data is not None

    def values(self) -> NDArray[np.int64]:
        """A constant's values in its shape."""
        if self.data is None:
            raise ValueError(f"{self.name} is no constant")
        flat = self.data.values(self.elements) if isinstance(self.data, Fill) else np.array(self.data, np.int64)
        return flat.reshape(self.shape)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value that it may be given."""
        return self.span or limits(self.dtype)


class Operator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One operator, with the names of what it reads and writes."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Attribute] = {}


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """One TOSA program: operators in the order in which they run.

    :param tensors: everything that an operator names, in any order.
    :param inputs: names of the arrays that it is called with.
    """

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    schema: int = 1

    @cached_property
    def by_name(self) -> Mapping[str, Tensor]:
        """The tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def producers(self) -> Mapping[str, Operator]:
        """The operator that writes each computed tensor."""
        return {name: operator for operator in self.operators for name in operator.outputs}

    def readers(self, name: str) -> list[Operator]:
        """The operators that read a tensor."""
        return [operator for operator in self.operators if name in operator.inputs]

    @property
    def ops(self) -> tuple[str, ...]:
        """The operators' names in order."""
        return tuple(operator.op for operator in self.operators)

    def __str__(self) -> str:
        return "\n".join(lines(self))


def limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of a TOSA integer type."""
    if dtype == "BOOL":
        return 0, 1
    half = 1 << (BITS[dtype] - 1)
    return -half, half - 1


def bound(stored: Attribute) -> int:
    """The number of a CLAMP's ``MinVal`` or ``MaxVal``, which the schema stores as bytes."""
    return int.from_bytes(bytes(stored if isinstance(stored, tuple) else (stored,)), "little", signed=True)


def stored_bound(number: int, dtype: str) -> tuple[int, ...]:
    """As the schema stores it."""
    return tuple(number.to_bytes(BITS[dtype] // 8, "little", signed=True))


def pruned(program: Program) -> Program:
    """The program without operators, inputs and tensors that no output depends on."""
    needed = set(program.outputs)
    kept: list[Operator] = []
    for operator in reversed(program.operators):
        if needed & set(operator.outputs):
            kept.append(operator)
            needed |= {*operator.inputs, *operator.outputs}
    return msgspec.structs.replace(
        program,
        tensors=tuple(tensor for tensor in program.tensors if tensor.name in needed),
        operators=tuple(reversed(kept)),
        inputs=tuple(name for name in program.inputs if name in needed),
    )


DATA: Mapping[str, int] = {
    **dict.fromkeys(("RESCALE", "NEGATE", "PAD", "AVG_POOL2D", "TABLE"), 1),
    **dict.fromkeys(("MUL", "MATMUL", "CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"), 2),
}
"""How many operands carry data; the others are zero points, factors, shifts, tables, shapes, and biases."""
BIASED = frozenset({"CONV2D", "CONV3D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D"})
"""The bias follows the data, and may be computed."""


ENTRIES = (256, 513)
"""Of a TABLE: Vela reads as many whatever there are, and may not come to an end."""


def parameters(operator: Operator) -> tuple[str, ...]:
    """Operands that TOSA wants to be known at compile time; an extension lifts that."""
    data = DATA.get(operator.op, len(operator.inputs))
    return operator.inputs[data + (operator.op in BIASED) :]


def problem(program: Program) -> str:
    """What makes the data no program, in one sentence; empty if nothing does.

    TOSA's own rules are the reference model's to check: this is about names, order and counts. The shape of a scalar
    has no values; any other tensor has some.
    """
    table = program.by_name
    if len(table) != len(program.tensors):
        return "two tensors have one name"
    constants = {tensor.name for tensor in program.tensors if tensor.constant}
    known = {*program.inputs, *constants}
    for operator in program.operators:
        if missing := [name for name in operator.inputs if name not in known]:
            return f"{operator.op} reads {missing[0]}, which nothing gives or makes before it"
        if given := [name for name in parameters(operator) if name not in constants]:
            return f"{operator.op} takes {given[0]} for a parameter, which is no constant"
        if operator.op == "TABLE" and (count := table[operator.inputs[-1]].elements) not in ENTRIES:
            return f"{operator.inputs[-1]} is no table: it has {count} of 256 or 513 entries"
        if again := [name for name in operator.outputs if name in known]:
            return f"{operator.op} writes {again[0]}, which exists already"
        known |= set(operator.outputs)
    if missing := [name for name in (*known, *program.outputs) if name not in table]:
        return f"{missing[0]} has no tensor"
    if missing := [name for name in program.outputs if name not in known]:
        return f"output {missing[0]} is made by nothing"
    for tensor in program.tensors:
        if isinstance(tensor.data, tuple) and len(tensor.data) != tensor.elements:
            return f"{tensor.name} has {len(tensor.data)} values for shape {list(tensor.shape)}"
        if tensor.distinct and tensor.shape[-1] > tensor.limits[1] - tensor.limits[0] + 1:
            return f"{tensor.name} cannot have {tensor.shape[-1]} values that differ in {list(tensor.limits)}"
        least = 0 if tensor.dtype == SHAPE else 1
        if tensor.dtype not in BITS or min(tensor.shape, default=1) < least:
            return f"{tensor.name} is {tensor.dtype} {list(tensor.shape)}"
    return ""


def encode(program: Program) -> bytes:
    """JSON."""
    return msgspec.json.encode(program)


def decode(data: bytes, where: str = "program") -> Program:
    """Read JSON.

    :param where: the file's name, for errors.
    :raises BadInput: it is no program.
    """
    try:
        program: Program = msgspec.json.decode(data, type=Program)
    except msgspec.DecodeError as error:
        raise BadInput(where, str(error), "give a program.json that 'armdiff vela' wrote") from None
    if found := problem(program):
        raise BadInput(where, found, "give a program.json that 'armdiff vela' wrote")
    return program


def lines(program: Program) -> list[str]:
    """The program for people, an operator a line: ``v3: INT8 [1, 4, 4, 8] = CONV2D(x1, c1, …) Pad=[0, 0, 0, 0]``.

    Flags that are not set are left out.
    """
    table = program.by_name
    given = [f"{name}: {_type(table[name])} (input{_span(table[name])})" for name in program.inputs]
    steps = [
        f"{', '.join(f'{name}: {_type(table[name])}' for name in operator.outputs)} = {operator.op}"
        f"({', '.join(_operand(table[name]) for name in operator.inputs)})"
        + "".join(f" {key}={_plain(key, value)}" for key, value in operator.attributes.items() if value is not False)
        for operator in program.operators
    ]
    return [*given, *steps, f"outputs: {', '.join(program.outputs)}"]


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)}"


def _span(tensor: Tensor) -> str:
    return "" if tensor.span is None else f", {tensor.span[0]} to {tensor.span[1]}"


def _plain(name: str, value: Attribute) -> str:
    if isinstance(value, tuple):
        return str(bound(value) if name in BOUNDS else list(value))
    return str(value)


def _operand(tensor: Tensor) -> str:
    if tensor.data is None:
        return tensor.name
    if isinstance(tensor.data, Fill):
        fill = tensor.data
        return f"{_type(tensor)} {fill.rule} {fill.low} to {fill.high} (seed {fill.seed})"
    if tensor.elements == 1 and tensor.dtype != SHAPE:
        return str(tensor.data[0])
    return str(list(tensor.data)) if len(tensor.data) <= 12 else _type(tensor)


def chain(program: Program) -> Sequence[str]:
    """The operators' names without RESCALE, which is everywhere."""
    return [op for op in program.ops if op not in TOSA_EVERYWHERE] or list(program.ops)
