"""Upstream source text: where a place is in its file, and its digest.

A place's source reaches from its first decorator (or its first line) to its last line, as the file
has it. The digest is the first twelve hex digits of that text's SHA-256, so a change anywhere else
in the file does not matter. Files are found without importing them.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from harness.case.errors import CannotRun

Place = tuple[str, str]
"""A function or an assignment of upstream's, as (module, qualified name)."""


@dataclass(frozen=True)
class Span:
    """Lines of a place, from 0, the last one excluded."""

    first: int
    last: int


def file_of(module: str) -> Path:
    """The installed file of a module.

    :raises CannotRun: it is not installed.
    """
    below = Path(*module.split("."))
    for folder in sys.path:
        for file in (Path(folder, below).with_suffix(".py"), Path(folder, below, "__init__.py")):
            if file.is_file():
                return file
    raise CannotRun(f"{module} is not installed; 'armdiff doctor' says what is missing")


@cache
def text_of(module: str) -> str:
    """Source text of an installed module."""
    return file_of(module).read_text()


@lru_cache(maxsize=128)
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a file's text. Many ask for it, so nobody may change it."""
    return ast.parse(text)


def node_at(tree: ast.Module, place: str) -> ast.stmt | None:
    """The statement that defines a qualified name: a function, or an assignment."""
    body: Sequence[ast.stmt] = tree.body
    found: ast.stmt | None = None
    for word in place.split("."):
        found = next((item for item in body if word in _defined(item)), None)
        if found is None:
            return None
        body = getattr(found, "body", ())
    return found


def alone(tree: ast.Module, place: str, instead: ast.stmt | None = None) -> ast.Module:
    """A place with its module's imports and nothing else: the same code, in a fraction of the time to compile.

    CPython compiles calls of imported names in a way of their own.

    :param instead: what stands at the place.
    """
    *classes, name = place.split(".")
    path = [node_at(tree, ".".join(classes[: index + 1])) for index in range(len(classes))]
    found = node_at(tree, place) if instead is None else instead
    assert found is not None, f"{name} is not in the tree"
    for owner in reversed(path):
        assert owner is not None
        around = copy.copy(owner)
        around.body = [found]  # type: ignore[attr-defined]
        found = around
    apart = [item for item in tree.body if not isinstance(item, (ast.FunctionDef, ast.ClassDef))]
    imports = [node for item in apart for node in ast.walk(item) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.Module([*imports, found], [])


def _defined(item: ast.stmt) -> tuple[str, ...]:
    if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
        return (item.name,)
    if isinstance(item, ast.Assign):
        return tuple(target.id for target in item.targets if isinstance(target, ast.Name))
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value is not None:
        return (item.target.id,)
    return ()


@cache
def span_of(text: str, place: str) -> Span | None:
    """The lines of a place in a file's text, decorators included; None if it is not there."""
    node = node_at(tree_of(text), place)
    if node is None:
        return None
    first = min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))])
    assert node.end_lineno is not None
    return Span(first - 1, node.end_lineno)


def source_of(text: str, place: str) -> str | None:
    """Source text of a place in a file's text; None if it is not there."""
    span = span_of(text, place)
    return None if span is None else "".join(text.splitlines(keepends=True)[span.first : span.last])


def digest_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def unchanged(module: str, digests: Mapping[str, str]) -> bool:
    """Whether places of an installed module are those that something was written for: place -> digest."""
    sources = {place: source_of(text_of(module), place) for place in digests}
    return all(source is not None and digest_of(source) == digests[place] for place, source in sources.items())
