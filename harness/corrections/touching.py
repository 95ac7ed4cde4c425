"""Which places of corrections does a piece of work reach? What is not reached cannot change its result.

While ``touched`` runs, each function that a correction changes notes that it was called, and then does what
it always did. A place whose code is the same with the correction (its edit only adds something behind it)
counts as not changed; an assignment counts as reached, since there is no telling who reads it.

Changes packages in memory, like ``harness.corrections.applying``: for worker processes.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from types import CodeType

from harness.corrections.applying import code_of, function_at
from harness.corrections.correction import Correction
from harness.corrections.source import edited_modules, file_of, node_at

Place = tuple[str, str]
_seen: set[Place] = set()


@contextmanager
def touched(corrections: Sequence[Correction]) -> Iterator[set[Place]]:
    """Collect the places of corrections that are reached inside, as (module, qualified name).

    Not to be nested, and not to be used while corrections apply.
    """
    _seen.clear()
    with ExitStack() as stack:
        for item in edited_modules(corrections):
            module = importlib.import_module(item.module)
            for place in item.places:
                function = function_at(module, place)
                if function is None:
                    _seen.add((item.module, place))
                    continue
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _noting(item.module, item.before, place)
        yield _seen


def changed_places(corrections: Sequence[Correction]) -> frozenset[Place]:
    """The places whose code or value is another one with the corrections."""
    return frozenset(
        (item.module, place)
        for item in edited_modules(corrections)
        for place in item.places
        if not _same_code(item.module, item.before, item.after, place)
    )


def note(module: str, place: str) -> None:
    """Called by the functions themselves."""
    _seen.add((module, place))


@cache
def _noting(module: str, text: str, place: str) -> CodeType:
    """The code of a function that notes its call first."""
    tree = ast.parse(text)
    node = node_at(tree, place)
    assert isinstance(node, ast.FunctionDef)
    call = f"__import__({__name__!r}, fromlist=['note']).note({module!r}, {place!r})"
    node.body[:0] = ast.parse(call).body
    ast.fix_missing_locations(tree)
    return code_of(compile(tree, str(file_of(module)), "exec", dont_inherit=True), place)


@cache
def _same_code(module: str, before: str, after: str, place: str) -> bool:
    if not isinstance(node_at(ast.parse(before), place), ast.FunctionDef):
        return False
    one, other = (ast.dump(node) for text in (before, after) if (node := node_at(ast.parse(text), place)) is not None)
    return one == other
