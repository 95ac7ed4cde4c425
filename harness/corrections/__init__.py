"""Corrected upstream passes: one file a correction, each a ``CORRECTION`` that ``harness.case.registry`` finds.

To add one: a file here with ``CORRECTION = Correction(...)`` (``harness.corrections.correction`` says
what the fields mean), and its name in a certificate (``armdiff certify NAME``). ``python -m
harness.corrections MODULE PLACE`` prints the digest of the installed source of a place.

``chosen`` turns the words of ``--correction`` into corrections: a name, ``all`` (every one that the
installed release needs), or a Python file that defines ``CORRECTION`` (your own, not yet in the tree).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from harness.case.errors import ArmdiffError, BadInput, CannotRun
from harness.case.registry import entries
from harness.compat.releases import installed
from harness.corrections.correction import Change, Correction, Edit

__all__ = ["Change", "Correction", "Edit", "chosen", "corrections", "find_correction"]


@cache
def corrections() -> Mapping[str, Correction]:
    """Every correction of the tree, by name."""
    return entries("correction", "harness.corrections", "CORRECTION")


def chosen(words: Sequence[str]) -> tuple[Correction, ...]:
    """The corrections that the words of ``--correction`` stand for, and what those need, each once.

    :raises BadInput: an unknown name, or a file that defines no correction.
    :raises CannotRun: the installed release does not need a named one.
    """
    release = installed().get("executorch", "")
    found: dict[str, Correction] = {}
    for word in words:
        if word == "all":
            found |= {name: item for name, item in corrections().items() if item.for_release(release)}
            continue
        item = find_correction(word)
        if not item.for_release(release):
            raise CannotRun(
                f"correction {item.name} is for executorch {', '.join(item.releases)}, and {release or 'none'} is "
                "installed; leave it out, or use 'all' for those that this release needs"
            )
        needed = [name for name in item.needs if corrections()[name].for_release(release)]
        found |= {one.name: one for one in chosen(needed)}
        found[item.name] = item
    return tuple(found.values())


def find_correction(word: str) -> Correction:
    """A correction by its name, or by the Python file that defines it.

    :raises BadInput: there is none.
    """
    if word.endswith(".py"):
        return _from_file(word)
    if word not in corrections():
        raise BadInput(
            "correction", f"unknown name {word!r}", f"use all, a .py file or one of {', '.join(corrections())}"
        )
    return corrections()[word]


@cache
def _from_file(word: str) -> Correction:
    names: dict[str, object] = {"__name__": "correction", "__file__": word}
    try:
        exec(compile(Path(word).read_text(), word, "exec"), names)
    except ArmdiffError:
        raise
    except (Exception, SystemExit) as error:
        raise BadInput(
            word, f"{type(error).__name__}: {error}", "give a Python file that defines CORRECTION"
        ) from error
    item = names.get("CORRECTION")
    if not isinstance(item, Correction):
        raise BadInput(word, "defines no CORRECTION", "see harness/corrections/correction.py for the form")
    return replace(item, origin=str(Path(word).resolve()))
