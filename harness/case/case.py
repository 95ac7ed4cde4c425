"""A case: one module graph x calibration x recipe x target, with its seeds, as pure data.

Everything that armdiff does starts from a ``Case`` and is a deterministic function of it. A case
is versioned JSON (``"schema": 1``) with no code in it; tensors that belong to it (a user's
weights, recorded calibration) live in a safetensors file beside it and are named by key.

Words: a *value* is what a node, an input or a constant produces. A value is referred to by name;
output ``k`` of a node with several outputs is ``name.k``. A node's ``operator`` is either an
entry of ``generators.ops`` ("conv2d") or an ATen overload ("aten.conv2d.default", a graph that
was captured from a user's model); the second kind records its result types.

Invariants (``check_case`` raises ``BadInput`` naming the JSON path otherwise): names are unique
identifiers, nodes are in topological order, every reference resolves, every number is finite,
every shape follows from the operator's rule. Unknown fields are errors, so that a typo in a
hand-edited case cannot be ignored.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import msgspec

SCHEMA = 1
DTYPES = ("float32", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")

Attributes = dict[str, Any]


class TensorType(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shape (elements per dimension) and dtype of one value."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A module input (a positional argument of ``forward``)."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A constant and how its value comes about.

    ``kind`` names an entry of ``harness.case.constants`` (full, zeros, ones, arange, ramp, random,
    literal, tensor) and ``parameters`` are that entry's.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    kind: str
    parameters: Attributes = {}


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One operator of the graph.

    ``types`` are the result types, recorded only where no shape rule is known (ATen overloads of
    a captured model).
    """

    name: str
    operator: str
    inputs: tuple[str, ...] = ()
    attributes: Attributes = {}
    types: tuple[TensorType, ...] | None = None


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A module graph: inputs, constants, nodes in topological order, outputs."""

    inputs: tuple[Input, ...] = ()
    constants: tuple[Constant, ...] = ()
    nodes: tuple[Node, ...] = ()
    outputs: tuple[str, ...]

    @property
    def captured(self) -> bool:
        """True if the graph came from a user's model rather than from a generator."""
        return any("." in node.operator for node in self.nodes)


class Distribution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named calibration distribution (an entry of ``generators.calibration``)."""

    kind: str
    parameters: Attributes = {}


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One seed for each thing that is drawn at random."""

    weights: int = 0
    calibration: int = 0
    evaluation: int = 0


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One module graph x calibration x recipe x target.

    ``recipe`` and ``target`` have one spelling each (``harness.case.recipe``, ``harness.case.target``). ``tensors``
    names the safetensors file beside the case, if it has one. ``samples`` is the number of calibration samples.
    """

    schema: int = SCHEMA
    graph: Graph
    calibration: dict[str, Distribution] = {}
    samples: int = 2
    recipe: str = "a8w8"
    target: str = "TOSA-1.0+INT"
    seeds: Seeds = Seeds()
    tensors: str | None = None
    note: str = ""


def maker_of(value: str) -> str:
    """The node, input or constant that a value comes from: ``split`` for ``split.1``."""
    return value.split(".", 1)[0]


def encode_case(case: Case) -> bytes:
    """Canonical JSON of a case: sorted keys, two-space indent, a newline at the end."""
    plain = msgspec.to_builtins(case)
    return (json.dumps(plain, indent=2, sort_keys=True, allow_nan=False) + "\n").encode()


def case_digest(case: Case) -> str:
    """Twelve hex digits that identify the case (its note does not count)."""
    anonymous = msgspec.structs.replace(case, note="")
    return hashlib.sha256(encode_case(anonymous)).hexdigest()[:12]
