"""Which places of corrections does a piece of work reach? What is not reached cannot change its result.

While ``touched`` runs, each function that a correction changes notes when control comes to a statement that
is another one with the correction, and then does what it always did: up to there both do the same. A place
whose code is the same with the correction (its edit only adds something behind it) counts as not changed; an
assignment counts as reached, since there is no telling who reads it. Where a correction inserts an ``if`` whose
test only reads, control comes to the change when the test holds. A function that somebody else has changed in
memory counts as reached, and stays as it is.

Changes packages in memory, like ``harness.corrections.applying``: for worker processes.
"""

from __future__ import annotations

import ast
import copy
import dis
import importlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from types import CodeType
from typing import Literal

from harness.compat.sources import Place, alone, node_at, source_of, text_of, tree_of
from harness.corrections.applying import code_in, compiled, function_at, is_as_installed
from harness.corrections.correction import Correction
from harness.corrections.source import Edited, edited_modules

Reach = Literal["quantization", "edge", "backend"]
"""Parts of a compile, in order; what precedes the first changed one need not be made again."""
_seen: set[Place] = set()
_unwatched: set[Place] = set()
"""What counts as reached at any time, as there is nothing to watch."""
_READS = {"all", "any", "get", "getattr", "is_quantized", "isinstance", "len", "modules", "_is_quantized_meta"}
"""Functions and methods, some of them upstream's, that only read."""
_READING = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.expr_context),
    *(ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator),
    *(ast.IfExp, ast.GeneratorExp, ast.comprehension),
)
"""Expressions that change nothing, calls aside."""


@contextmanager
def touched(corrections: Sequence[Correction]) -> Iterator[set[Place]]:
    """Collect the places of corrections that are reached inside, as (module, qualified name).

    Not to be nested, and not to be used while corrections apply.
    """
    _seen.clear()
    _unwatched.clear()
    with ExitStack() as stack:
        for item in edited_modules(corrections):
            module = importlib.import_module(item.module)
            for place in item.places:
                function = function_at(module, place)
                if function is None or not is_as_installed(function, item, place):
                    _unwatched.add((item.module, place))
                    continue
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _noting(item, place)
        _seen.update(_unwatched)
        yield _seen


@contextmanager
def reaching() -> Iterator[set[Place]]:
    """Collect, within ``touched``, the places that are reached inside, be it again."""
    before, inside = set(_seen), set[Place]()
    _seen.clear()
    _seen.update(_unwatched)
    try:
        yield inside
    finally:
        inside |= _seen
        _seen.update(before)


def changed_places(corrections: Sequence[Correction]) -> frozenset[Place]:
    """The places whose code or value is another one with the corrections."""
    return frozenset(
        (item.module, place)
        for item in edited_modules(corrections)
        for place in item.places
        if not _same_code(item.module, item.before, item.after, place)
    )


@cache
def first_reader(module: str) -> Reach:
    """The first part of a compile that reads what a module assigns, as far as its name and its passes tell.

    A module that defines no class is a helper's, and could be read at once.
    """
    words = module.split(".")
    if "quantizer" in words or words[0] != "executorch":
        return "quantization"
    if any(word in ("tosa", "operators", "operator_support", "ethosu") for word in words):
        return "backend"
    manager = text_of("executorch.backends.arm._passes.arm_pass_manager")
    pipeline = source_of(manager, "ArmPassManager.transform_for_annotation_pipeline") or manager
    classes = [item.name for item in tree_of(text_of(module)).body if isinstance(item, ast.ClassDef)]
    return "quantization" if not classes or any(name in pipeline for name in classes) else "backend"


def note(module: str, place: str) -> None:
    """Called by the functions themselves."""
    _seen.add((module, place))


@cache
def _noting(item: Edited, place: str) -> CodeType:
    """The code of a function that notes when it comes to what the edited text has otherwise."""
    tree = tree_of(item.before)
    before, after = copy.deepcopy(node_at(tree, place)), node_at(tree_of(item.after), place)
    assert isinstance(before, ast.FunctionDef)
    assert isinstance(after, ast.FunctionDef)
    call = ast.parse(f"__import__({__name__!r}, fromlist=['note']).note({item.module!r}, {place!r})").body
    codes = [code_in(item.module, text, place) for text in (item.before, item.after)]
    where: list[tuple[list[ast.stmt], int, list[ast.stmt]]] = [(before.body, 0, [])]
    if (codes[0].co_flags, codes[0].co_freevars) == (codes[1].co_flags, codes[1].co_freevars) and _keeps_names(*codes):
        where = [*_apart(before.body, after.body)]
    own, new = _names([before]), _definitions(item.after) - _definitions(item.before)
    for block, index, inserted in where:
        block[index:index] = _guarded(inserted, own, new, call) or call
    return compiled(item.module, alone(tree, place, ast.fix_missing_locations(before)), place)


def _apart(before: list[ast.stmt], after: list[ast.stmt]) -> Iterator[tuple[list[ast.stmt], int, list[ast.stmt]]]:
    """Where two blocks part: blocks of the first one, with the index of a statement (or the end) in each.

    If the second has nothing but some statements inserted there, they come with it.
    """
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
    behind = len(other) - len(one) + first
    yield before, first, after[first:behind] if other[behind:] == one[first:] else []


def _guarded(inserted: list[ast.stmt], own: set[str], new: set[str], call: list[ast.stmt]) -> list[ast.stmt]:
    """A copy of inserted statements that end with an ``if``, with the call in its place; empty if they do more.

    :param own: names that the function has already; what comes ahead of the ``if`` must bind others.
    :param new: names that only the correction defines.
    """
    *ahead, last = inserted or [ast.Pass()]
    if not isinstance(last, ast.If) or last.orelse or not _only_reads(last.test, new):
        return []
    for item in ahead:
        if isinstance(item, ast.ImportFrom) and item.module and not item.level:
            bound = {alias.asname or alias.name for alias in item.names}
            exists = all(hasattr(importlib.import_module(item.module), alias.name) for alias in item.names)
        elif isinstance(item, ast.Assign):
            nodes = [node for target in item.targets for node in ast.walk(target)]
            bound = _names(item.targets)
            exists = _only_reads(item.value, new)
            exists &= all(isinstance(node, (ast.Name, ast.Tuple, ast.Store)) for node in nodes)
        else:
            return []
        if not exists or bound & own:
            return []
    return [*copy.deepcopy(ahead), ast.If(last.test, call, [])]


def _only_reads(expression: ast.expr, new: set[str]) -> bool:
    """Can an expression be evaluated without the correction, and without changing anything?"""
    calls = [node for node in ast.walk(expression) if isinstance(node, ast.Call)]
    called = {getattr(call.func, "id", "") or getattr(call.func, "attr", "") for call in calls}
    others = [node for node in ast.walk(expression) if not isinstance(node, ast.Call)]
    return called <= _READS and all(isinstance(node, _READING) for node in others) and not _names([expression]) & new


def _names(nodes: Sequence[ast.AST]) -> set[str]:
    """Names of variables and arguments."""
    found = [inner for node in nodes for inner in ast.walk(node)]
    return {item.id for item in found if isinstance(item, ast.Name)} | {
        item.arg for item in found if isinstance(item, ast.arg)
    }


def _definitions(text: str) -> set[str]:
    """The functions and classes that a module's text defines."""
    return {item.name for item in tree_of(text).body if isinstance(item, (ast.FunctionDef, ast.ClassDef))}


_BLOCKS = ("body", "orelse")


def _blocks(item: ast.stmt) -> dict[str, list[ast.stmt]]:
    """The statements under an ``if``, a loop or a function; what is under others is not looked at."""
    if not isinstance(item, (ast.If, ast.For, ast.While, ast.FunctionDef)):
        return {}
    return {name: block for name in _BLOCKS if (block := getattr(item, name, None))}


def _without_blocks(item: ast.stmt) -> ast.stmt:
    shallow = copy.copy(item)
    for name in _blocks(item):
        setattr(shallow, name, [])
    return shallow


def _keeps_names(before: CodeType, after: CodeType) -> bool:
    """Do names mean what they meant, wherever in a function? A new local hides a global."""
    own, hidden = ({*code.co_varnames, *code.co_cellvars} for code in (before, after))
    inner = [{item.co_name: item for item in code.co_consts if isinstance(item, CodeType)} for code in (before, after)]
    outer = {item.argval for item in dis.get_instructions(before) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return not ((hidden - own) & {*outer, *before.co_freevars}) and all(
        _keeps_names(item, inner[1][name]) for name, item in inner[0].items() if name in inner[1]
    )


@cache
def _same_code(module: str, before: str, after: str, place: str) -> bool:
    if not isinstance(node_at(tree_of(before), place), ast.FunctionDef):
        return False
    one, other = (ast.dump(node) for text in (before, after) if (node := node_at(tree_of(text), place)) is not None)
    return one == other
