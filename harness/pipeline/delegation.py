"""Which operators of a lowered program run on the CPU, and what upstream says about each.

No probe with a rate: the look-up costs under a millisecond, so every observation has it under
``delegation``. The oracle of that name judges it.

*Float by recipe*: the operator lies in a submodule that the recipe names (``float=``), or it
directly reads or feeds such an operator, which keeps it from being quantized on that side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.case.recipe import parse_recipe
from harness.pipeline.probes.results import FallenBack

NAME = "delegation"


def fallen_back(recipe: str, lowered: Any, partitioner: Any, reasons: Mapping[str, str]) -> tuple[FallenBack, ...]:
    """Every operator on the CPU, quantize and dequantize aside.

    :param lowered: the ``Lowered`` of the case.
    :param reasons: what the partitioner reported, by node name (``harness.compat.support``).
    """
    from harness.compat.states import operator_name
    from harness.compat.support import listed
    from harness.pipeline.edge_program import cpu_nodes

    left_float = set(parse_recipe(recipe).float_nodes)
    found = []
    for node in cpu_nodes(lowered.edge_program.graph_module):
        name = operator_name(node.target)
        near = (node, *node.all_input_nodes, *node.users)
        by_recipe = bool(left_float) and any(_inside(item, left_float) for item in near)
        found.append(FallenBack(name, node.name, listed(name, partitioner), reasons.get(node.name, ""), by_recipe))
    return tuple(found)


def _inside(node: Any, modules: set[str]) -> bool:
    """Does a node come from one of these submodules (or from one inside them)?"""
    stack = node.meta.get("nn_module_stack") or {}
    paths = {str(entry[0]) for entry in stack.values()}
    return any(path == name or path.startswith(f"{name}.") for path in paths for name in modules)
