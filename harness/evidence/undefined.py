"""What PyTorch itself leaves open, so that no answer to it is wrong.

``index_put`` without ``accumulate`` that writes several values to one place: its documentation calls the result
undefined. TOSA calls a SCATTER with an index twice unpredictable, and the reference model gives no answer. Nor does it
for a POW of a negative number to a broken power, which is NaN in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from harness.case.arrays import Array
from harness.case.case import Graph, Node
from harness.case.sampling import EvaluationInput

WRITING = ("aten.index_put.default", "aten.index_put_.default")


def written_twice(graph: Graph, inputs: Sequence[EvaluationInput]) -> bool:
    """Does an ``index_put`` whose indices are inputs write to a place more than once, on any evaluation input?"""
    names = [item.name for item in graph.inputs]
    return any(
        _repeats(node, dict(zip(names, item.arrays, strict=True)))
        for node in graph.nodes
        if node.operator in WRITING
        for item in inputs
    )


def not_a_number(outputs: Sequence[Sequence[Array]]) -> bool:
    """Is a float result NaN, on any evaluation input?"""
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for run in outputs for array in run)


def _repeats(node: Node, given: Mapping[str, Array]) -> bool:
    arguments = node.attributes.get("args", ())
    if len(arguments) < 3 or (len(arguments) > 3 and arguments[3]):
        return False
    named = [item["value"] for item in arguments[1] if isinstance(item, dict) and "value" in item]
    indices = [given[name] for name in named if name in given and given[name].dtype.kind in "iu"]
    if not indices or len(indices) != len(arguments[1]):
        return False
    places = np.stack([item.reshape(-1) for item in np.broadcast_arrays(*indices)])
    return bool(np.unique(places, axis=1).shape[1] < places.shape[1])
