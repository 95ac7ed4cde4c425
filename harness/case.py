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
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import BadInput

SCHEMA = 1
DTYPES = ("float32", "int8", "int16", "int32", "int64", "bool")

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

    ``kind`` names an entry of ``harness.constants`` (full, zeros, ones, arange, ramp, random,
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

    ``recipe`` and ``target`` have one spelling each (``harness.recipe``, ``harness.target``). ``tensors`` names the
    safetensors file beside the case, if it has one.
    ``samples`` is the number of calibration samples.
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


_decoder = msgspec.json.Decoder(Case)
"""Made here, once: the first use of a type is not safe in msgspec (0.22 crashes), and pools read cases in threads."""


def decode_case(data: bytes, where: str = "case") -> Case:
    """Decode and check a case.

    :raises BadInput: naming ``where``, the JSON path and the remedy.
    """
    from harness.checking import check_case

    _reject_non_finite(data, where)
    try:
        case = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        problem, _, path = str(error).partition(" - at ")
        raise BadInput(
            f"{where}: {path.strip('`') or '$'}",
            problem[:1].lower() + problem[1:],
            "see Case in harness/case.py for the fields and their types",
        ) from None
    try:
        check_case(case)
    except BadInput as error:
        raise error.inside(where) from None
    return case


def file_of(path: Path) -> Path:
    """The case file that a path stands for: itself, or ``case.json`` in a folder. Tensors lie beside it."""
    return path / "case.json" if path.is_dir() else path


def read_case(path: Path) -> Case:
    """Read a case file (or ``case.json`` in a folder)."""
    file = file_of(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "give a case.json or its folder") from None
    return decode_case(data, str(file))


def _reject_non_finite(data: bytes, where: str) -> None:
    """JSON has no NaN, but many writers emit it: name the place instead of the byte offset."""
    marks: list[str] = []

    def mark(text: str) -> str:
        marks.append(text)
        return f"\0{text}"

    if not any(word in data for word in (b"NaN", b"Infinity")):
        return
    try:
        tree = json.loads(data, parse_constant=mark)
    except ValueError:
        return  # malformed in another way: msgspec says where
    if not marks:
        return
    path = _find_marked(tree, "$") or "$"
    raise BadInput(
        f"{where}: {path}",
        f"{marks[0]} is not a number JSON can hold",
        'use a finite number (an infinite bound of an ATen argument is {"float": "inf"})',
    )


def _find_marked(tree: Any, path: str) -> str | None:
    if isinstance(tree, str):
        return path if tree.startswith("\0") else None
    children: list[tuple[str, Any]] = []
    if isinstance(tree, dict):
        children = [(f"{path}.{key}", value) for key, value in tree.items()]
    elif isinstance(tree, list):
        children = [(f"{path}[{index}]", value) for index, value in enumerate(tree)]
    return next((found for at, value in children if (found := _find_marked(value, at))), None)
