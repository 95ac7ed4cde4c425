"""Which places of corrections does a piece of work reach? What is not reached cannot change its result.

While ``touched`` runs, each function that a correction changes notes when control comes to a statement that
is another one with the correction, and then does what it always did: up to there both do the same. A place
whose code is the same with the correction (its edit only adds something behind it) counts as not changed; an
assignment counts as reached, since there is no telling who reads it.

Changes packages in memory, like ``harness.corrections.applying``: for worker processes.
"""

from __future__ import annotations

import ast
import copy
import importlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from types import CodeType

from harness.corrections.applying import code_in, code_of, function_at
from harness.corrections.correction import Correction
from harness.corrections.source import Edited, edited_modules, file_of, node_at

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
                function.__code__ = _noting(item, place)
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
def _noting(item: Edited, place: str) -> CodeType:
    """The code of a function that notes when it comes to what the edited text has otherwise."""
    tree = ast.parse(item.before)
    before, after = node_at(tree, place), node_at(ast.parse(item.after), place)
    assert isinstance(before, ast.FunctionDef)
    assert isinstance(after, ast.FunctionDef)
    call = f"__import__({__name__!r}, fromlist=['note']).note({item.module!r}, {place!r})"
    where = [(before.body, 0)]
    if _keeps_names(item, place):
        where = [*_apart(before.body, after.body)]
    for block, index in where:
        block[index:index] = ast.parse(call).body
    ast.fix_missing_locations(tree)
    return code_of(compile(tree, str(file_of(item.module)), "exec", dont_inherit=True), place)


def _apart(before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int]]:
    """Where two blocks part: blocks of the first one, with the index of a statement (or the end) in each."""
    one, other = [[ast.dump(item) for item in block] for block in (before, after)]
    if one == other:
        return
    same = list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    first = len(same)
    if len(one) == len(other) and one[first + 1 :] == other[first + 1 :]:
        inner = _blocks(before[first]), _blocks(after[first])
        heads = [ast.dump(_without_blocks(item)) for item in (before[first], after[first])]
        if heads[0] == heads[1] and inner[0].keys() == inner[1].keys():
            for name, block in inner[0].items():
                yield from _apart(block, inner[1][name])
            return
    yield before, first


_BLOCKS = ("body", "orelse")


def _blocks(item: ast.stmt) -> dict[str, list[ast.stmt]]:
    """The statements under an ``if`` or a loop; what is under any other statement is not looked at."""
    if not isinstance(item, (ast.If, ast.For, ast.While)):
        return {}
    return {name: block for name in _BLOCKS if (block := getattr(item, name))}


def _without_blocks(item: ast.stmt) -> ast.stmt:
    shallow = copy.copy(item)
    for name in _blocks(item):
        setattr(shallow, name, [])
    return shallow


def _keeps_names(item: Edited, place: str) -> bool:
    """Do names mean with an edit what they meant, wherever in the function it is? A new local hides a global."""
    before, after = (code_in(item.module, text, place) for text in (item.before, item.after))
    own, hidden = ({*code.co_varnames, *code.co_cellvars} for code in (before, after))
    return (before.co_flags, before.co_freevars) == (after.co_flags, after.co_freevars) and not (
        (hidden - own) & {*before.co_names}
    )


@cache
def _same_code(module: str, before: str, after: str, place: str) -> bool:
    if not isinstance(node_at(ast.parse(before), place), ast.FunctionDef):
        return False
    one, other = (ast.dump(node) for text in (before, after) if (node := node_at(ast.parse(text), place)) is not None)
    return one == other
