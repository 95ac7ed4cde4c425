"""``armdiff doctor``: what is installed, which legs can run here, and what to do for the others."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from harness.compat.releases import PACKAGES, installed, release_line
from harness.registry import legs
from harness.target import DEFAULT_TARGETS, parse_target


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report; ``remedy`` is empty where all is well."""

    name: str
    ok: bool
    what: str
    remedy: str = ""


_INSTALL = {
    "executorch": 'pip install torch==2.13.0 torchao==0.18.0 "executorch[ethos-u]==1.5.1"',
    "torch": "pip install torch==2.13.0  (an unpinned torch brings gigabytes of CUDA)",
    "torchao": "pip install torchao==0.18.0",
    "ethos-u-vela": "pip install ethos-u-vela==5.1.0",
    "tosa-tools": "pip install tosa-tools==2026.5.0",
}
_MODULES = {"tosa-tools": "tosa_reference_model", "ethos-u-vela": "ethosu.vela"}
FVP_BINARIES = ("FVP_Corstone_SSE-300_Ethos-U55", "FVP_Corstone_SSE-300_Ethos-U65", "FVP_Corstone_SSE-320")


def package_checks(versions: Mapping[str, str] | None = None) -> list[Check]:
    """One check a package, and one for the release line that they form."""
    versions = installed() if versions is None else versions
    checks = [
        Check(name, name in versions, versions.get(name, "not installed"), "" if name in versions else _INSTALL[name])
        for name in PACKAGES
    ]
    for package, module in _MODULES.items():
        if package in versions and not _importable(module):
            checks.append(Check(f"import {module}", False, "fails", f"reinstall: {_INSTALL[package]}"))
    line = release_line()
    known = line is not None
    checks.append(
        Check(
            "release line",
            known,
            line or "not one of the release table",
            "" if known else "corpus entries have no expectation for this mix; use a tox environment of README.md",
        )
    )
    return checks


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def leg_checks() -> list[Check]:
    """One check a leg: can it run for at least one default target?"""
    checks = []
    for leg in legs().values():
        reasons = [leg.skip(parse_target(name)) for name in DEFAULT_TARGETS]
        ok = any(reason is None for reason in reasons)
        checks.append(
            Check(
                f"leg {leg.name}",
                ok,
                f"needs {leg.needs}" if ok else str(reasons[-1]),
                "" if ok else f"wait for {leg.needs}" if leg.needs.startswith("a later") else f"install {leg.needs}",
            )
        )
    found = [name for name in FVP_BINARIES if shutil.which(name)]
    checks.append(
        Check(
            "FVP on PATH",
            bool(found),
            ", ".join(found) or "none",
            ""
            if found
            else "Arm distributes FVPs under an EULA: ExecuTorch's examples/arm/setup.sh --i-agree-to-the-"
            "contained-eula fetches them; put their folders on PATH (this version does not use them yet)",
        )
    )
    return checks


def required_missing() -> list[Check]:
    """Checks without which nothing can run."""
    return [check for check in package_checks() if not check.ok and check.name in PACKAGES]
