"""What a verb finds around it: the installed packages.

A verb asks before it starts a worker, so that what is missing is one line and not the death of
a process. ``harness.pipeline.doctor`` knows what is required.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.case.errors import CannotRun
from harness.case.target import parse_target
from harness.pipeline.engines import EngineChoice, check_engine


def installed_line() -> str:
    """The release line and the versions of the packages that decide it."""
    from harness.compat.releases import installed, no_line, release_line

    versions = ", ".join(f"{name} {version}" for name, version in installed().items())
    line = f"release line {release_line() or 'unknown'} ({versions})"
    return f"{line}\n{unknown}" if (unknown := no_line(installed())) else line


def need_environment() -> None:
    """Refuse to go on without the packages that lowering needs.

    :raises CannotRun: naming them, and how to install the first.
    """
    from harness.pipeline.doctor import required_missing

    missing = required_missing()
    if missing:
        raise CannotRun("not installed: " + ", ".join(item.name for item in missing) + f"; {missing[0].remedy}")


def need_engine(choice: EngineChoice, targets: Iterable[str]) -> None:
    """Refuse targets that cannot be compiled here, and an explicit ``--ethos-u-engine`` that this machine cannot serve.

    :raises CannotRun: there is no FVP for one of them, or no converter for VGF.
    """
    from harness.compat.vgf import no_converter
    from harness.pipeline.legs.ethos_u_fvp import missing

    wanted = [parse_target(name) for name in dict.fromkeys(targets)]
    if any(target.vgf for target in wanted) and (lack := no_converter()) is not None:
        raise CannotRun(f"target vgf: {lack.what}; {lack.remedy}")
    check_engine(choice, wanted, missing)
