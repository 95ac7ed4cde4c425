"""Upstream source text: where a place is in its file, its digest, and the file after edits.

A place's source reaches from its first decorator (or its first line) to its last line, as the file
has it. The digest is the first twelve hex digits of that text's SHA-256, so a change anywhere else
in the file does not matter. Files are found without importing them.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.case.errors import CannotRun
from harness.compat.releases import installed
from harness.corrections.correction import Change, Correction


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
    node = node_at(ast.parse(text), place)
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


@dataclass(frozen=True)
class Edited:
    """An upstream module with corrections.

    :param places: the places that changed, each once.
    """

    module: str
    before: str
    after: str
    places: tuple[str, ...]


def edited_modules(corrections: Sequence[Correction]) -> tuple[Edited, ...]:
    """Every module that corrections change on the installed release, with all their edits, in order.

    :raises CannotRun: the code is not what a correction was written for, or two exclude each other.
    """
    return _edited_modules(tuple(corrections), installed().get("executorch", ""))


@cache
def _edited_modules(corrections: tuple[Correction, ...], release: str) -> tuple[Edited, ...]:
    """Parsing and editing the files takes half a second for all corrections, and every task asks for it."""
    parts = [(correction, change) for correction in corrections for change in correction.for_release(release)]
    texts = {change.module: text_of(change.module) for _, change in parts}
    for correction, change in parts:
        _check_digest(correction, change, texts[change.module], release)
    edited = dict(texts)
    for correction, change in parts:
        edited[change.module] = _edited(correction, change, edited[change.module])
    return tuple(
        Edited(
            module, text, edited[module], tuple(dict.fromkeys(item.place for _, item in parts if item.module == module))
        )
        for module, text in texts.items()
    )


def _check_digest(correction: Correction, change: Change, text: str, release: str) -> None:
    source = source_of(text, change.place)
    seen = "is missing" if source is None else f"has digest {digest_of(source)}"
    if source is None or digest_of(source) != change.digests[release]:
        raise CannotRun(
            f"correction {correction.name}: {change.module}:{change.place} {seen}, and the correction was "
            f"written for {change.digests[release]} of executorch {release}; install that release unmodified, "
            "or renew the correction"
        )


def _edited(correction: Correction, change: Change, text: str) -> str:
    for edit in change.edits:
        span = span_of(text, change.place)
        assert span is not None
        lines = text.splitlines(keepends=True)
        source = "".join(lines[span.first : span.last])
        if source.count(edit.old) != 1:
            raise CannotRun(
                f"correction {correction.name}: {change.module}:{change.place} has its text {edit.old.strip()[:60]!r} "
                f"{source.count(edit.old)} times, not once; apply it without the corrections that change this place, "
                "or give the edit more context"
            )
        lines[span.first : span.last] = [source.replace(edit.old, edit.new)]
        text = "".join(lines)
    return text
