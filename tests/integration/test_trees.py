"""Structures that are mapped directly come out as torch's own mapping makes them."""

from collections import OrderedDict, defaultdict, namedtuple

import pytest
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.utils import _pytree

from harness.compat.warm.trees import directly, map_directly

Pair = namedtuple("Pair", ("one", "other"))


class Sized(tuple):
    """A tuple that is no structure to torch."""


TREES = [
    3,
    None,
    (),
    [],
    {},
    (1, (2.0, [3, None]), {"a": (4,), "b": []}),
    immutable_list([1, immutable_list([2]), (3, immutable_dict({"a": 4}))]),
    OrderedDict([("b", 1), ("a", [2, 3])]),
    defaultdict(list, {"b": [1], "a": (2,)}),
    Pair(1, Pair([2], None)),
    torch.return_types.topk((1, 2)),
    torch.Size([2, 3]),
    Sized((1, 2)),
    slice(1, 2),
    ([Sized((1, 2)), torch.Size([2, 3])], {"z": 1, "a": {"b": 2}}),
]


def same(one, other):
    """Equal, and of the same types all the way down."""
    if type(one) is not type(other) or _pytree.tree_structure(one) != _pytree.tree_structure(other):
        return False
    leaves = [_pytree.tree_leaves(item) for item in (one, other)]
    return all(type(a) is type(b) and a == b for a, b in zip(*leaves, strict=True))


def marked(value):
    return ("leaf", str(value))


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_one_tree_is_mapped_as_torch_maps_it(tree):
    assert same(directly(_pytree.tree_map)(str, tree), _pytree.tree_map(str, tree))
    ours, seen = directly(_pytree.tree_map), ([], [])
    ours(seen[0].append, tree)
    _pytree.tree_map(seen[1].append, tree)
    assert seen[0] == seen[1]  # the same leaves in the same order


def test_what_a_function_makes_of_a_leaf_is_not_walked():
    assert directly(_pytree.tree_map)(marked, [1, (2,)]) == [("leaf", "1"), (("leaf", "2"),)]


def test_several_trees_and_predicates_are_torch_s():
    def loud(func, tree, *rests, is_leaf=None):
        return "torch"

    assert directly(loud)(max, [1], [2]) == "torch"
    assert directly(loud)(str, [1], is_leaf=lambda _: True) == "torch"
    assert directly(loud)(str, [1]) == ["1"]


def test_an_exception_comes_out():
    with pytest.raises(ZeroDivisionError):
        directly(_pytree.tree_map)(lambda value: 1 // value, (1, [0]))


def test_mapping_only_some_types_is_direct_as_well(monkeypatch):
    tree, expected = (1, ["a", 2.0], {"k": 3}), ("1", ["a", 2.0], {"k": "3"})
    assert _pytree.tree_map_only(int, str, tree) == expected
    monkeypatch.setattr(_pytree, "tree_map", _pytree.tree_map)
    map_directly()
    monkeypatch.setattr(_pytree, "tree_flatten", None)
    assert _pytree.tree_map_only(int, str, tree) == expected
