"""``armdiff doctor``: what is installed, which legs can run here, and what to do for the others."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.case.target import parse_target
from harness.compat.releases import PACKAGES, basis_of, installed, no_line
from harness.compat.vela import default_configuration
from harness.compat.vgf import lacking
from harness.ethosu.accelerator import ACCELERATORS
from harness.pipeline.fvp.advice import binary_steps, runner_steps
from harness.pipeline.fvp.boards import BOARDS, Board
from harness.pipeline.fvp.discovery import FvpMissing, find_binary, find_runner, version_of
from harness.pipeline.legs import legs


@dataclass(frozen=True)
class Check:
    """One item of the doctor's report; ``remedy`` (one or several lines) is empty where all is well."""

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
_SHOWN = {"ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256", "ethos-u85": "ethos-u85-256"}
"""The target of each family whose runner the doctor explains how to build."""


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
    unknown = no_line(versions)
    remedy = "use a tox environment of docs/releases.md to be told what is known" if unknown else ""
    checks.append(Check("release line", not unknown, unknown or basis_of(versions).line, remedy))
    return checks


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def leg_checks() -> list[Check]:
    """One check a leg: can it run for at least one target of its own? And what Arm's FVPs and VGF lack."""
    versions = installed()
    checks = []
    for leg in legs().values():
        absent = [name for name in PACKAGES if name in leg.needs.split() and name not in versions]
        reasons: list[str | None] = [f"{name} is not installed" for name in absent]
        reasons = reasons or [leg.skip(parse_target(name)) for name in leg.examples]
        ok = any(reason is None for reason in reasons)
        checks.append(
            Check(
                f"leg {leg.name}",
                ok,
                f"needs {leg.needs}" if ok else str(reasons[-1]),
                "" if ok else f"install {leg.needs}",
            )
        )
    return [*checks, *vgf_checks(), *fvp_checks()]


def vgf_checks() -> list[Check]:
    """One check for each thing that running VGF payloads lacks."""
    return [Check("VGF", False, lack.what, lack.remedy) for lack in lacking()]


def fvp_checks(environment: Mapping[str, str] | None = None, folder: Path | None = None) -> list[Check]:
    """Two checks an Ethos-U family: its FVP, and the runners for its targets.

    :param environment: instead of the process's.
    :param folder: instead of the current folder.
    """
    environment = os.environ if environment is None else environment
    folder = Path.cwd() if folder is None else folder
    return [check for board in BOARDS.values() for check in _board_checks(board, environment, folder)]


def _board_checks(board: Board, environment: Mapping[str, str], folder: Path) -> Iterator[Check]:
    name = f"FVP for {board.family}"
    try:
        binary = find_binary(board, environment)
        yield Check(name, True, f"{version_of(binary, environment)} ({binary})")
    except FvpMissing as problem:
        yield Check(name, False, str(problem), binary_steps(board))
    found, problems = [], {}
    for target in (name for name in ACCELERATORS if name.startswith(board.family)):
        try:
            runner = find_runner(board, default_configuration(target), environment, folder)
            found.append(f"{target}: {runner}")
        except FvpMissing as problem:
            problems[target] = str(problem)
    shown = _SHOWN[board.family]
    steps = "" if found else runner_steps(board, shown)
    yield Check(f"FVP runner for {board.family}", bool(found), "; ".join(found) or problems[shown], steps)


def required_missing() -> list[Check]:
    """Checks without which nothing can run."""
    return [check for check in package_checks() if not check.ok and check.name in PACKAGES]
