"""Apply corrections to the installed packages while a ``with`` block runs, and put everything back.

The edited file is compiled, and the code object of each changed function replaces the code of the
function that is already loaded: whoever imported it before sees the correction, whatever table it is
registered in. Assignments of a class are evaluated anew and set on the class. New functions and
classes of the module are defined in it. Leaving the block puts back the very objects that were there.

Blocks nest: the inner one applies its corrections and those of the blocks around it. Digests are
checked before anything is touched (``harness.corrections.source``).

Imports the modules that it changes, and so torch and executorch: for worker processes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from harness.case.errors import CannotRun
from harness.compat.sources import alone, file_of, node_at, tree_of
from harness.corrections.correction import Correction
from harness.corrections.source import Edited, edited_modules

_MISSING = object()
_WRAPS = ("fget", "__wrapped__", "__func__")
_active: list[tuple[Correction, ...]] = []
_ours: set[CodeType] = set()
"""Code that was compiled here: of corrections, and what ``harness.corrections.touching`` makes of a function."""


@contextmanager
def applied(corrections: Sequence[Correction]) -> Iterator[None]:
    """Apply several corrections together, in order, on top of those of the blocks around this one.

    :raises CannotRun: the code, installed or in memory, is not what one of them was written for.
    """
    around = _active[-1] if _active else ()
    together = (*around, *(item for item in corrections if item not in around))
    modules = edited_modules(together)
    with ExitStack() as stack:
        for item in modules:
            loaded = importlib.import_module(item.module)
            _define_new(loaded, item, stack)
            for place in item.places:
                _replace(loaded, place, item, stack)
        _active.append(together)
        stack.callback(_active.pop)
        yield


def function_at(module: ModuleType, place: str) -> FunctionType | None:
    """The loaded function at a place; None if an assignment is there."""
    owner, name = _owner(module, place)
    value = vars(owner)[name]
    return _function(value) if isinstance(value, (FunctionType, staticmethod, classmethod, property)) else None


def _owner(module: ModuleType, place: str) -> tuple[Any, str]:
    """What a place is an attribute of: the module or a class of it."""
    owner: Any = module
    *path, name = place.split(".")
    for word in path:
        owner = vars(owner)[word]
    return owner, name


def is_as_installed(function: FunctionType, item: Edited, place: str) -> bool:
    """Has nobody but corrections changed a loaded function?"""
    return function.__code__ in _ours or function.__code__ == code_in(item.module, item.before, place)


def _replace(module: ModuleType, place: str, item: Edited, stack: ExitStack) -> None:
    function = function_at(module, place)
    if function is not None:
        if not is_as_installed(function, item, place):
            raise CannotRun(
                f"{module.__name__}:{place} was changed in memory, and a correction would undo that; apply "
                "corrections before anything else patches the function"
            )
        before, after = function.__code__, code_in(module.__name__, item.after, place)
        if (before.co_freevars, _signature(before)) != (after.co_freevars, _signature(after)):
            raise CannotRun(
                f"{module.__name__}:{place}: a correction changes what the function takes or closes over; "
                "leave its signature as it is"
            )
        function.__code__ = after
        stack.callback(setattr, function, "__code__", before)
        return
    owner, name = _owner(module, place)
    node = node_at(tree_of(item.after), place)
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    assert node.value is not None
    value = eval(compile(ast.Expression(node.value), str(file_of(module.__name__)), "eval"), vars(module))
    stack.callback(setattr, owner, name, vars(owner)[name])
    setattr(owner, name, value)


def _define_new(module: ModuleType, edited: Edited, stack: ExitStack) -> None:
    """Define the module-level functions and classes that only the edited text has."""
    for name, code in _new_definitions(edited):
        stack.callback(_put_back, module, name, vars(module).get(name, _MISSING))
        exec(code, vars(module))


@cache
def _new_definitions(edited: Edited) -> tuple[tuple[str, CodeType], ...]:
    """Names of the functions and classes that only the edited text has, with the code that defines each."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    known = {item.name for item in tree_of(edited.before).body if isinstance(item, kinds)}
    return tuple(
        (item.name, compile(ast.Module([item], []), str(file_of(edited.module)), "exec"))
        for item in tree_of(edited.after).body
        if isinstance(item, kinds) and item.name not in known
    )


def _put_back(module: ModuleType, name: str, value: object) -> None:
    if value is _MISSING:
        delattr(module, name)
    else:
        setattr(module, name, value)


def _function(value: Any) -> FunctionType:
    """The plain function behind a static or class method, a property or a decorator that says what it wraps."""
    while True:
        inner = next((getattr(value, name) for name in _WRAPS if getattr(value, name, None) is not None), None)
        if inner is None:
            assert isinstance(value, FunctionType), value
            return value
        value = inner


def _signature(code: CodeType) -> tuple[Any, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[:count]


@cache
def code_in(module: str, text: str, place: str) -> CodeType:
    """The code object of a function in a module's text."""
    return compiled(module, alone(tree_of(text), place), place)


def compiled(module: str, tree: ast.Module, place: str) -> CodeType:
    """The code object of a function in a tree of a module's text."""
    code = code_of(compile(tree, str(file_of(module)), "exec", dont_inherit=True), place)
    _ours.add(code)
    return code


def code_of(module: CodeType, place: str) -> CodeType:
    """The code object of a function inside that of its module."""
    found = dict(_named(module)).get(place)
    if found is None:
        raise CannotRun(f"{place} is no function; a correction's place is a function or a class's assignment")
    return found


def _named(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Every code object inside another, by its qualified name (which Python 3.10 does not keep)."""
    for item in code.co_consts:
        if isinstance(item, CodeType):
            name = f"{prefix}{item.co_name}"
            yield name, item
            of_function = item.co_flags & inspect.CO_OPTIMIZED
            yield from _named(item, f"{name}.<locals>." if of_function else f"{name}.")
