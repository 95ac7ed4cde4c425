"""What is installed: package versions, the release line that they form, and whose expectations hold for them.

A line is a whole set of packages. A set that is no line is called unknown, and is held against the nearest line: an
expectation that depends on a package whose version differs does not hold there, every other one does
(``Basis.lines``). A line made from another one by a newer or an older compiler (``vela52``) is treated in the same way:
where an entry says nothing of it, what holds for the line that it was made from holds for it.

No torch import here: versions come from package metadata.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("executorch", "torch", "torchao", "ethos-u-vela", "tosa-tools")


@dataclass(frozen=True)
class Line:
    """A release line.

    :param versions: the version of each of ``PACKAGES``.
    :param of: the line that it was made from by exchanging compilers, or empty.
    """

    name: str
    versions: tuple[str, str, str, str, str]
    of: str = ""

    @property
    def releases(self) -> dict[str, str]:
        """Package -> version."""
        return dict(zip(PACKAGES, self.versions, strict=True))


TABLE = (
    Line("vela52", ("1.5.1", "2.13.0", "0.18.0", "5.2.0", "2026.8.0"), "default"),
    Line("default", ("1.5.1", "2.13.0", "0.18.0", "5.1.0", "2026.5.0")),
    Line("vela50", ("1.5.1", "2.13.0", "0.18.0", "5.0.0", "2026.5.0"), "default"),
    Line("et141", ("1.4.1", "2.13.0", "0.18.0", "5.1.0", "2026.5.0")),
    Line("et131", ("1.3.1", "2.12.0", "0.17.0", "5.1.0", "2026.2.1")),
    Line("et120", ("1.2.0", "2.11.0", "0.17.0", "5.1.0", "2026.2.1")),
    Line("seed", ("1.2.0", "2.10.0", "0.15.0", "5.1.0", "2026.2.1")),
    Line("et110", ("1.1.0", "2.10.0", "0.15.0", "5.1.0", "2026.2.1")),
)
"""The table of docs/releases.md, the newest first."""
LINES = tuple(line.name for line in TABLE)
DEFAULT = "default"


@dataclass(frozen=True)
class Basis:
    """Whose expectations hold for a set of packages.

    :param line: the line that the set forms, or the nearest one.
    :param differs: the packages that have another version there; none if the set forms the line.
    """

    line: str
    differs: tuple[str, ...] = ()

    def lines(self, depends: Collection[str]) -> Iterator[str]:
        """The lines whose expectations of something hold here, the nearest first.

        :param depends: the packages that the expectation depends on.
        """
        line, differs = line_named(self.line), self.differs
        while not set(differs) & set(depends):
            yield line.name
            if not line.of:
                return
            made_from = line_named(line.of)
            differs = (*differs, *_differences(line.releases, made_from))
            line = made_from


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


def basis_of(versions: Mapping[str, str], expect: str = "") -> Basis:
    """What a set of packages is judged by: the line that it forms, or the nearest one and what differs from it.

    The nearest line differs in the fewest packages; executorch counts most, and of equals the newest is taken.

    :param expect: the line that a set which forms none is judged by as if it were that line.
    """
    differences = {line.name: _differences(versions, line) for line in TABLE}
    nearest = min(TABLE, key=lambda line: ("executorch" in differences[line.name], len(differences[line.name])))
    found = Basis(nearest.name, differences[nearest.name])
    return Basis(expect) if found.differs and expect else found


def _differences(versions: Mapping[str, str], line: Line) -> tuple[str, ...]:
    """The packages whose version is another than a line's; a local label such as ``+cpu`` says nothing."""
    return tuple(
        package for package, version in line.releases.items() if versions.get(package, "").partition("+")[0] != version
    )


def line_named(name: str) -> Line:
    """The line of a name of ``LINES``."""
    return next(line for line in TABLE if line.name == name)


@cache
def basis() -> Basis:
    """What the installed packages are judged by."""
    return basis_of(installed())


def release_line() -> str | None:
    """The line of docs/releases.md that is installed, or None for any other set."""
    return None if basis().differs else basis().line


def name_of(versions: Mapping[str, str]) -> str:
    """A set of packages in a few words: ``default``, ``default with ethos-u-vela 5.3.0``, ``executorch 1.6.0``."""
    found = basis_of(versions)
    if "executorch" in found.differs:
        return f"executorch {versions.get('executorch', 'unknown')}"
    there = " and ".join(f"{package} {versions.get(package, '(none)')}" for package in found.differs)
    return f"{found.line} with {there}" if there else found.line


def no_line(versions: Mapping[str, str]) -> str:
    """Why a set of packages is no line, and what does not apply to it; empty if it is one."""
    found = basis_of(versions)
    if not found.differs:
        return ""
    there = " and ".join(f"{package} {versions.get(package, '(not installed)')}" for package in found.differs)
    return (
        f"{there} {'is' if len(found.differs) == 1 else 'are'} no part of a known release line; nearest: {found.line}; "
        f"expectations of bugs that depend on {' or '.join(found.differs)} do not apply"
    )


def arm_folder() -> Path:
    """The folder of ``executorch.backends.arm`` (a namespace package in some releases).

    Only for processes that import executorch anyway.
    """
    import executorch.backends.arm as arm

    return Path(next(iter(arm.__path__)))
