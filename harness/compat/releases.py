"""What is installed: package versions, and the release line that they form.

No torch import here: versions come from package metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("executorch", "torch", "torchao", "ethos-u-vela", "tosa-tools")

# executorch version (and torch where one executorch version serves two lines) -> line, DESIGN.md's table
_LINES = (
    ("default", "1.5.1", ""),
    ("et141", "1.4.1", ""),
    ("et131", "1.3.1", ""),
    ("et120", "1.2.0", "2.11"),
    ("seed", "1.2.0", "2.10"),
    ("et110", "1.1.0", ""),
)
LINES = tuple(name for name, _, _ in _LINES)


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
    """The line of DESIGN.md's release table that is installed, or None for any other mix."""
    versions = installed()
    for name, executorch, torch in _LINES:
        if versions.get("executorch") == executorch and versions.get("torch", "").startswith(torch):
            return name
    return None


def arm_folder() -> Path:
    """The folder of ``executorch.backends.arm`` (a namespace package in some releases).

    Only for processes that import executorch anyway.
    """
    import executorch.backends.arm as arm

    return Path(next(iter(arm.__path__)))
