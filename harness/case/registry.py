"""Where the engine finds generators' operators and distributions, oracles, legs, probes and corrections.

Each kind lives in a package of its own, and a module of that package adds entries through one
module-level tuple: ``OPERATORS`` in ``generators.ops.*``, ``DISTRIBUTIONS`` in
``generators.calibration``, ``ORACLE`` in ``oracles.*``, ``LEG`` in ``harness.pipeline.legs.*``, ``PROBE`` in
``harness.pipeline.probes.*``, ``CORRECTION`` in ``harness.corrections.*``. Adding a file is enough; nothing
else names it. Two entries of one name are an error at start-up.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.case.operators import Operator

if TYPE_CHECKING:
    from harness.case.distributions import CalibrationKind
    from harness.corrections import Correction
    from harness.evidence.observation import Oracle
    from harness.pipeline.legs import Leg
    from harness.pipeline.probes import Probe


def _entries(package: str, attribute: str) -> Iterable[Any]:
    home = importlib.import_module(package)
    for info in sorted(pkgutil.iter_modules(home.__path__), key=lambda item: item.name):
        module = importlib.import_module(f"{package}.{info.name}")
        found = getattr(module, attribute, ())
        yield from found if isinstance(found, tuple) else (found,)


def _by_name(kind: str, entries: Iterable[Any]) -> Mapping[str, Any]:
    table: dict[str, Any] = {}
    for entry in entries:
        if entry.name in table:
            raise RuntimeError(f"two {kind} entries are named {entry.name!r}; rename one")
        table[entry.name] = entry
    return table


@cache
def operators() -> Mapping[str, Operator]:
    """Every operator entry of ``generators.ops``, by name."""
    return _by_name("operator", _entries("generators.ops", "OPERATORS"))


@cache
def calibration_kinds() -> Mapping[str, CalibrationKind]:
    """Every calibration distribution of ``generators``, by name."""
    return _by_name("calibration", _entries("generators", "DISTRIBUTIONS"))


@cache
def oracles() -> Mapping[str, Oracle]:
    """Every oracle of ``oracles``, by name."""
    return _by_name("oracle", _entries("oracles", "ORACLE"))


@cache
def legs() -> Mapping[str, Leg]:
    """Every leg of ``harness.pipeline.legs``, by name, in the order in which they run."""
    table = _by_name("leg", _entries("harness.pipeline.legs", "LEG"))
    return dict(sorted(table.items(), key=lambda item: item[1].order))


@cache
def probes() -> Mapping[str, Probe]:
    """Every probe of ``harness.pipeline.probes``, by name."""
    return _by_name("probe", _entries("harness.pipeline.probes", "PROBE"))


@cache
def corrections() -> Mapping[str, Correction]:
    """Every correction of ``harness.corrections``, by name."""
    return _by_name("correction", _entries("harness.corrections", "CORRECTION"))
