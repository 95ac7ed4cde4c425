"""Map nested arguments directly (an entry of ``harness.compat.warm.tricks``).

``torch.utils._pytree.tree_map`` flattens a structure into leaves and a description, and builds another one from them.
An Arm pass asks that three times of every node's arguments, which are a few tensors in a tuple: an eighth of a
pipeline's time. ``map_directly`` walks the structure once, with the functions that its types are registered with, and
leaves several trees at once, predicates for leaves and named tuples to torch.

Imports torch: only worker processes import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch.utils import _pytree

Map = Callable[..., Any]


def map_directly() -> None:
    """From now on, ``tree_map`` and what is made of it (``tree_map_only``) walk one tree once."""
    _pytree.tree_map = directly(_pytree.tree_map)


def directly(tree_map: Map) -> Map:
    """``tree_map`` of one tree without a description of it."""
    registered = _pytree.SUPPORTED_NODES

    @wraps(tree_map)
    def mapping(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Any = None) -> Any:
        if rests or is_leaf is not None:
            return tree_map(func, tree, *rests, is_leaf=is_leaf)
        return walked(func, tree)

    def walked(func: Callable[..., Any], tree: Any) -> Any:
        kind = type(tree)
        if kind is tuple or kind is list:
            return kind([walked(func, item) for item in tree])
        if kind is dict:
            return {key: walked(func, item) for key, item in tree.items()}
        if isinstance(tree, tuple):  # a named tuple is a structure though nobody registered it, another subclass a leaf
            return tree_map(func, tree)
        known = registered.get(kind)
        if known is None:
            return func(tree)
        children, context = known.flatten_fn(tree)
        return known.unflatten_fn([walked(func, item) for item in children], context)

    return mapping
