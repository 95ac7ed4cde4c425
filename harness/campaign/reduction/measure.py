"""Which of two cases is the smaller one, and how far are they apart?

The graph counts first, then what it takes to describe: inputs and constants, sizes, attributes, calibration,
recipe, seeds. The last word has the length of the JSON, so that no two different cases chase each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.case.case import Case, encode_case
from harness.case.checking import value_types

Measure = tuple[float, ...]
PLAIN = ("uniform", "ramp", "one_sided", "shifted", "normal")
"""Calibration kinds, the plainest first; all others come behind."""
_KINDS = ("full", "ones", "zeros", "ramp", "arange", "literal", "random", "parameter", "tensor")


def measure(case: Case) -> Measure:
    """Smaller for the smaller case: nodes, outputs, inputs and constants, elements, numbers, plainness, length."""
    graph = case.graph
    kinds = [PLAIN.index(item.kind) if item.kind in PLAIN else len(PLAIN) for item in case.calibration.values()]
    numbers = [*_numbers([node.attributes for node in graph.nodes])]
    return (
        len(graph.nodes),
        len(graph.outputs),
        len(graph.inputs) + len(graph.constants),
        len(graph.constants),
        sum(type_.elements for type_ in value_types(graph).values()),
        sum(map(abs, numbers)),
        sum(_KINDS.index(item.kind) if item.kind in _KINDS else len(_KINDS) for item in graph.constants),
        sum(kinds),
        len(case.recipe),
        case.samples,
        sum(msgspec.structs.astuple(case.seeds)),
        sum(map(abs, _numbers([item.parameters for item in case.calibration.values()]))),
        sum(map(abs, _numbers([item.parameters for item in graph.constants]))),
        len(encode_case(case)),
    )


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, (int, float)) and math.isfinite(value):
        yield float(value)


def distance(one: Case, other: Case) -> int:
    """How many leaves of two cases' JSON differ."""
    first, second = (dict(_leaves(msgspec.to_builtins(case), "")) for case in (one, other))
    return sum(first.get(path) != second.get(path) for path in first.keys() | second.keys())


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    named = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else None
    if named is None:
        yield path, value
        return
    for key, item in named:
        inner = item.get("name", key) if isinstance(item, dict) else key  # a node less must not move all the others
        yield from _leaves(item, f"{path}.{inner}")
