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
from harness.evidence.macs import macs
from harness.pipeline.probes.results import FallenBack

NAME = "delegation"


def fallen_back(recipe: str, lowered: Any, partitioner: Any, reasons: Mapping[str, str]) -> tuple[FallenBack, ...]:
    """Every operator on the CPU, quantize and dequantize aside.

    :param lowered: the ``Lowered`` of the case.
    :param reasons: what the partitioner reported, by node name (``harness.compat.support``).
    """
    from harness.compat.states import call_of, operator_name
    from harness.compat.support import listed
    from harness.pipeline.edge_program import cpu_nodes

    left_float = set(parse_recipe(recipe).float_nodes)
    found = []
    for node in cpu_nodes(lowered.edge_program.graph_module):
        name = operator_name(node.target)
        near = (node, *node.all_input_nodes, *node.users)
        by_recipe = bool(left_float) and any(_inside(item, left_float) for item in near)
        shapes = [_shape(item) for item in node.args]
        work = macs(name, node.args, shapes, _shape(node) or ())
        reason = reasons.get(node.name, "")
        found.append(
            FallenBack(name, node.name, listed(name, partitioner), reason, by_recipe, call=call_of(node), macs=work)
        )
    return tuple(found)


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a node's value; None for what is no tensor."""
    found = getattr(getattr(value, "meta", {}).get("val"), "shape", None)
    return None if found is None else tuple(map(int, found))


def _inside(node: Any, modules: set[str]) -> bool:
    """Does a node come from one of these submodules (or from one inside them)?"""
    stack = node.meta.get("nn_module_stack") or {}
    paths = {str(entry[0]) for entry in stack.values()}
    return any(path == name or path.startswith(f"{name}.") for path in paths for name in modules)
