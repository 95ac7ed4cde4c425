"""What is installed: package versions, and the release line that they form.

No torch import here: versions come from package metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("executorch", "torch", "torchao", "ethos-u-vela", "tosa-tools")

TABLE = (
    ("default", "1.5.1", "2.13.0"),
    ("et141", "1.4.1", "2.13.0"),
    ("et131", "1.3.1", "2.12.0"),
    ("et120", "1.2.0", "2.11.0"),
    ("seed", "1.2.0", "2.10.0"),
    ("et110", "1.1.0", "2.10.0"),
)
"""Release line, executorch and torch (the table of docs/releases.md), the newest first."""
LINES = tuple(name for name, _, _ in TABLE)


@cache
def installed() -> Mapping[str, str]:
    """Version of each package that matters; a missing one is absent."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def release_line() -> str | None:
    """The line of docs/releases.md that is installed, or None for any other mix."""
    versions = installed()
    found = [(name, torch) for name, executorch, torch in TABLE if versions.get("executorch") == executorch]
    if len(found) > 1:  # one executorch serves two lines: torch's minor version tells them apart
        there = versions.get("torch", "")
        found = [(name, torch) for name, torch in found if there.startswith(torch.rpartition(".")[0])]
    return found[0][0] if found else None


def arm_folder() -> Path:
    """The folder of ``executorch.backends.arm`` (a namespace package in some releases).

    Only for processes that import executorch anyway.
    """
    import executorch.backends.arm as arm

    return Path(next(iter(arm.__path__)))
