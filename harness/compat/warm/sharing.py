"""Work of torch and executorch that is the same every time, done once (entries of ``harness.compat.warm.tricks``).

None changes what is computed:

- ``load_operators_once``: ``torch._export.utils._materialize_cpp_cia_ops`` looks up every operator of the
  dispatcher whenever a program is decomposed, because libraries may add some. Here all are loaded before the
  first case, and those of a library that can be decomposed are looked for once for as many as it has.
- ``share_node_histories``: ``torch.fx.traceback.NodeSource``, the history of a node, is deep-copied into every
  node made from it, pass after pass. Nothing changes a history once it is made, so copies may share it.
- ``leave_out_annotations``: ``torch._ops.OperatorBase.py_impl`` evaluates the annotations of its inner function
  at each of the 12,000 calls that a decomposition makes.
- ``flatten_without_garbage``: ``torch.utils._pytree.tree_flatten`` makes an inner function that refers to itself, so
  that every call (5,000 a case) leaves a circle: two fifths of all that a collection looks at. It is let go of.

``shared_edge`` keeps the edge program of the first lowering inside it for those that follow: everything
ahead of partitioning, two thirds of a lowering's time
(``executorch.exir.program._program._gen_edge_manager_for_partitioners``, seen in 1.1.0 to 1.5.1).

Imports torch and executorch: only worker processes import this module.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from executorch.exir.program import _program
from torch import _ops
from torch._export import utils
from torch.fx import traceback
from torch.utils import _pytree

from harness.compat.warm.stage_cache import EDGE, enabled


def load_operators_once() -> None:
    """Look up the dispatcher's operators now, and not for every decomposition."""
    if hasattr(utils, "_materialize_cpp_cia_ops"):
        utils._materialize_cpp_cia_ops()
        utils._materialize_cpp_cia_ops = _nothing
    look, found = getattr(utils, "_collect_all_valid_cia_ops_for_namespace", None), dict[str, tuple[int, Any]]()
    if look is None:
        return

    def look_once(library: Any) -> Any:
        many = len([*library])
        if found.get(library.name, (-1,))[0] != many:
            found[library.name] = many, look(library)
        return found[library.name][1]

    utils._collect_all_valid_cia_ops_for_namespace = look_once


def share_node_histories() -> None:
    """Let a copy of a node have the history of the original, not a copy of it."""
    if hasattr(traceback, "NodeSource"):
        traceback.NodeSource.__deepcopy__ = _itself


def leave_out_annotations() -> None:
    """Stop ``py_impl`` from evaluating the annotations of its inner function."""
    _compile_anew(_ops.OperatorBase.py_impl)


def flatten_without_garbage() -> None:
    """Have ``tree_flatten`` let go of its inner function before it returns."""
    _compile_anew(_pytree.tree_flatten, _let_go)


def _let_go(tree: ast.Module) -> None:
    """Give up a function's inner functions ahead of its last statement, if that returns and does not name them.

    Their names are set to None: dynamo, which traces ``tree_flatten`` for ``cond``, cannot trace ``del`` of a name that
    an inner function has, too.
    """
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    inner = [item.name for item in function.body if isinstance(item, ast.FunctionDef)]
    last = function.body[-1]
    named = {item.id for item in ast.walk(last) if isinstance(item, ast.Name)}
    if isinstance(last, ast.Return) and inner and not named & {*inner}:
        gone = ast.Assign([ast.Name(name, ast.Store()) for name in inner], ast.Constant(None))
        function.body.insert(-1, ast.fix_missing_locations(ast.copy_location(gone, last)))


def _compile_anew(function: FunctionType, change: Callable[[ast.Module], None] = lambda tree: None) -> None:
    """Compile a function's own source again, changed, without what is evaluated only to annotate."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    change(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)  # where its source is found, by tracebacks too
    compiled = compile(tree, function.__code__.co_filename, "exec", dont_inherit=True)
    [function.__code__] = [item for item in compiled.co_consts if isinstance(item, CodeType)]


def _nothing() -> None:
    pass


def _itself(source: Any, _: dict[int, Any]) -> Any:
    return source


class SharedEdge:
    """The edge program of one graph, once it was made.

    :ivar enabled: take it from here; otherwise make it anew.
    :ivar making: called before and after the one that is kept is made.
    """

    def __init__(self) -> None:
        self.enabled = True
        self.cached: Any = None
        self.making: Callable[[], None] = _nothing


@contextmanager
def shared_edge() -> Iterator[SharedEdge]:
    """Let the lowerings of one quantized graph inside share what precedes partitioning (if ``edge-cached`` is on)."""
    original = _program._gen_edge_manager_for_partitioners
    shared = SharedEdge()

    def generate(*args: Any, **kwargs: Any) -> Any:
        if not shared.enabled:
            return original(*args, **kwargs)
        if shared.cached is None:
            shared.making()
            shared.cached = original(*args, **kwargs)
            shared.making()
        elif not enabled(EDGE):
            return original(*args, **kwargs)
        return copy.deepcopy(shared.cached)

    _program._gen_edge_manager_for_partitioners = generate
    try:
        yield shared
    finally:
        _program._gen_edge_manager_for_partitioners = original
