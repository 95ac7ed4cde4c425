"""Entries: what a module adds to the engine by being there.

Each kind of entry lives in a package of its own, and a module of that package adds entries through one
module-level name, an entry or a tuple of them: ``OPERATORS`` in ``generators.ops.*``, ``DISTRIBUTIONS`` in
``generators.calibration``, ``ORACLE`` in ``oracles.*``, ``LEG`` in ``harness.pipeline.legs.*``, ``PROBE`` in
``harness.pipeline.probes.*``, ``CORRECTION`` in ``harness.corrections.*``. Adding a file is enough; nothing
else names it. Two entries of one name are an error at start-up.

Each kind's table is a function beside its type, such as ``harness.pipeline.legs.legs``; those of a case's own
words are here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from harness.case.distributions import CalibrationKind
from harness.case.operators import Operator


def entries(kind: str, package: str, attribute: str) -> Mapping[str, Any]:
    """Every entry of a kind, by name, in the order of its modules' names.

    :param package: whose modules are looked into.
    :param attribute: the name under which a module has its entry, or its tuple of them.
    :raises RuntimeError: two have one name.
    """
    table: dict[str, Any] = {}
    for entry in _found(package, attribute):
        if entry.name in table:
            raise RuntimeError(f"two {kind} entries are named {entry.name!r}; rename one")
        table[entry.name] = entry
    return table


def _found(package: str, attribute: str) -> Iterator[Any]:
    home = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(home.__path__), key=lambda item: item.name):
        module = importlib.import_module(f"{package}.{info.name}")
        found = getattr(module, attribute, ())
        yield from found if isinstance(found, tuple) else (found,)


@cache
def operators() -> Mapping[str, Operator]:
    """Every operator entry of ``generators.ops``, by name."""
    return entries("operator", "generators.ops", "OPERATORS")


@cache
def calibration_kinds() -> Mapping[str, CalibrationKind]:
    """Every calibration distribution of ``generators``, by name."""
    return entries("calibration", "generators", "DISTRIBUTIONS")
