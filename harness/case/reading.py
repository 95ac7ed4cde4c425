"""Read cases: JSON from files, decoded and checked, every mistake with its JSON path and its remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from harness.case.case import Case
from harness.case.checking import check_case
from harness.case.errors import MALFORMED, BadInput

_decoder: msgspec.json.Decoder[Case] = msgspec.json.Decoder(Case)
"""Made here, once: the first use of a type is not safe in msgspec (0.22 crashes), and pools read cases in threads."""


def decode_case(data: bytes, where: str = "case") -> Case:
    """Decode and check a case.

    :raises BadInput: naming ``where``, the JSON path and the remedy.
    """
    _reject_non_finite(data, where)
    try:
        case = _decoder.decode(data)
    except MALFORMED as error:
        problem, _, path = str(error).partition(" - at ")
        raise BadInput(
            f"{where}: {path.strip('`') or '$'}",
            problem if problem[1:2].isupper() else problem[:1].lower() + problem[1:],
            "see Case in harness/case/case.py for the fields and their types",
        ) from None
    try:
        check_case(case)
    except BadInput as error:
        raise error.inside(where) from None
    return case


def file_of(path: Path) -> Path:
    """The case file that a path stands for: itself, or ``case.json`` in a folder. Tensors lie beside it."""
    return path / "case.json" if path.is_dir() else path


def read_case(path: Path) -> Case:
    """Read a case file (or ``case.json`` in a folder)."""
    file = file_of(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(str(path), f"cannot be read ({error.strerror})", "give a case.json or its folder") from None
    return decode_case(data, str(file))


def _reject_non_finite(data: bytes, where: str) -> None:
    """JSON has no NaN, but many writers emit it: name the place instead of the byte offset."""
    marks: list[str] = []

    def mark(text: str) -> str:
        marks.append(text)
        return f"\0{text}"

    if not any(word in data for word in (b"NaN", b"Infinity")):
        return
    try:
        tree = json.loads(data, parse_constant=mark)
    except ValueError:
        return  # malformed in another way: msgspec says where
    if not marks:
        return
    path = _find_marked(tree, "$") or "$"
    raise BadInput(
        f"{where}: {path}",
        f"{marks[0]} is not a number JSON can hold",
        'use a finite number (an infinite bound of an ATen argument is {"float": "inf"})',
    )


def _find_marked(tree: Any, path: str) -> str | None:
    if isinstance(tree, str):
        return path if tree.startswith("\0") else None
    children: list[tuple[str, Any]] = []
    if isinstance(tree, dict):
        children = [(f"{path}.{key}", value) for key, value in tree.items()]
    elif isinstance(tree, list):
        children = [(f"{path}[{index}]", value) for index, value in enumerate(tree)]
    return next((found for at, value in children if (found := _find_marked(value, at))), None)
