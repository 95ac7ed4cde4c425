"""Find the FVP and the runner for a target, by armdiff's variables first and upstream's conventions next.

Variables (``<F>`` is ``U55``, ``U65`` or ``U85``, ``<MACS>`` the target's MAC count):

* ``ARMDIFF_FVP_<F>``: the FVP's executable; else its name is looked up on PATH;
* ``ARMDIFF_FVP_ELF_<F>_<MACS>``, then ``ARMDIFF_FVP_ELF_<F>``: the runner, taken as it is;
* ``ARMDIFF_FVP_TIME_LIMIT``: seconds of one run.

Else the runner is looked for where ``runner_utils.py`` (``_elf_search_roots``) looks: under
``arm_test`` of EXECUTORCH_ROOT, GITHUB_WORKSPACE, BUILD_WORKSPACE_DIRECTORY, and of those parents
of the current folder and of the installed package that have ``arm_test`` or ``examples/arm``; first
in ``arm_semihosting_executor_runner_[portable-ops_]<board>_<target>``, then in upstream's own folder
without the target. Such a runner must be built for what the program was compiled for. Its build
folder's CMakeCache.txt says what that is; where there is none, the folder's name does.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.case.errors import BadInput
from harness.compat.vela import VelaConfiguration
from harness.pipeline.fvp.boards import Board, macs_of
from harness.pipeline.fvp.process import run

TIME_LIMIT_VARIABLE = "ARMDIFF_FVP_TIME_LIMIT"
TIME_LIMIT = 60.0
"""Seconds that one run may take, unless the variable says otherwise."""
LONGEST_LIMIT = 100.0
"""More would not fit into the time limit of a case, which is run twice (``harness.workers.pool``)."""
_PROBE_SECONDS = 20.0
_ELF = "arm_executor_runner"
_PLACES = ("", "Release", "examples/arm/executor_runner", "examples/arm/executor_runner/Release")
_CACHE_ENTRY = re.compile(r"^(ETHOSU_TARGET_NPU_CONFIG|SYSTEM_CONFIG|MEMORY_MODE):\w+=(.*)$", re.MULTILINE)


class FvpMissing(Exception):
    """What an FVP run lacks on this machine, in one line."""


@dataclass(frozen=True)
class Runner:
    """One runner ELF.

    :param portable: upstream's folder with portable kernels; False where the ELF was named by a variable.
    :param built: what it was built for; None where a variable named it: its user vouches for it.
    """

    elf: Path
    portable: bool = False
    built: VelaConfiguration | None = None

    def __str__(self) -> str:
        return f"{self.elf} ({'named by variable' if self.built is None else f'built for {self.built}'})"


def find_binary(board: Board, environment: Mapping[str, str]) -> Path:
    """The FVP's executable.

    :raises FvpMissing: naming what to set or to put on PATH.
    """
    variable = f"ARMDIFF_FVP_{board.variable}"
    named = environment.get(variable)
    if named:
        found = shutil.which(named, path=environment.get("PATH"))
        if found is None:
            raise FvpMissing(f"{variable} is {named}, which is no executable file")
        return Path(found).absolute()
    found = shutil.which(board.binary, path=environment.get("PATH", ""))
    if found is None:
        raise FvpMissing(f"{board.binary} is not on PATH")
    return Path(found).absolute()


def version_of(binary: Path, environment: Mapping[str, str]) -> str:
    """The FVP's own first line for ``--version``.

    :raises FvpMissing: it does not start.
    """
    return _version(binary, tuple(sorted(run_environment(binary, environment).items())))


@cache
def _version(binary: Path, environment: tuple[tuple[str, str], ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="fvp-") as name:
        folder = Path(name)
        try:
            status, output = run(
                [str(binary), "--version"], _PROBE_SECONDS, dict(environment), folder, folder / "version.log"
            )
        except OSError as error:
            raise FvpMissing(f"{binary} does not start: {error.strerror}") from None
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if status != 0 or not lines:
        why = "no answer" if status is None else lines[-1] if lines else f"exit status {status} and no output"
        raise FvpMissing(f"{binary} does not start: {why}")
    return lines[0]


def run_environment(binary: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of an FVP: its own python/lib goes on LD_LIBRARY_PATH (SSE-320 is linked against it).

    An installation is ``models/<platform>/FVP_…`` beside ``python/lib`` (``fvp_utils.sh``).
    """
    parents = binary.resolve().parents
    library = parents[2] / "python" / "lib" if len(parents) > 2 else None
    if library is None or not library.is_dir():
        return dict(environment)
    paths = [str(library), *filter(None, environment.get("LD_LIBRARY_PATH", "").split(":"))]
    return {**environment, "LD_LIBRARY_PATH": ":".join(dict.fromkeys(paths))}


def find_runner(
    board: Board,
    wanted: VelaConfiguration,
    environment: Mapping[str, str],
    folder: Path,
    *,
    portable: bool = False,
) -> Runner:
    """The runner for a program.

    :param wanted: what the program was compiled for.
    :param folder: the current folder.
    :param portable: prefer a runner with portable kernels: the program leaves operators on the CPU.
    :raises FvpMissing: there is none, or none that fits.
    """
    for variable in (f"ARMDIFF_FVP_ELF_{board.variable}_{macs_of(wanted.target)}", f"ARMDIFF_FVP_ELF_{board.variable}"):
        if named := environment.get(variable):
            if not Path(named).is_file():
                raise FvpMissing(f"{variable} is {named}, which is no file")
            return Runner(Path(named).absolute())
    found = list(_built_runners(board, wanted, environment, folder))
    fitting = [runner for runner in found if runner.built == wanted]
    if fitting:
        return next((runner for runner in fitting if runner.portable == portable), fitting[0])
    if found:
        raise FvpMissing(f"the runner {found[0]} does not fit {wanted}")
    raise FvpMissing(f"there is no runner ELF for {wanted.target}")


def _built_runners(
    board: Board, wanted: VelaConfiguration, environment: Mapping[str, str], folder: Path
) -> Iterator[Runner]:
    for root in search_roots(environment, folder):
        for suffix, named in ((f"_{wanted.target}", wanted), ("", board.built)):
            for portable in (False, True):
                build = root / "arm_test" / build_folder(board, suffix, portable=portable)
                for place in _PLACES:
                    elf = build / place / _ELF
                    if elf.is_file():
                        yield Runner(elf, portable, _recorded(build) or named)
                        break


def build_folder(board: Board, suffix: str = "", *, portable: bool = False) -> str:
    """Upstream's name for the build folder of a board's semihosting runner."""
    return f"arm_semihosting_executor_runner_{'portable-ops_' if portable else ''}{board.folder}{suffix}"


def _recorded(build: Path) -> VelaConfiguration | None:
    """What a CMake build folder was configured for (``build_executor_runner.sh`` passes all three words)."""
    try:
        text = (build / "CMakeCache.txt").read_text(errors="replace")
    except OSError:
        return None
    words = dict(_CACHE_ENTRY.findall(text))
    if len(words) != 3:
        return None
    return VelaConfiguration(words["ETHOSU_TARGET_NPU_CONFIG"], words["SYSTEM_CONFIG"], words["MEMORY_MODE"])


def search_roots(environment: Mapping[str, str], folder: Path) -> list[Path]:
    """Folders that may hold ``arm_test``, in upstream's order."""
    names = ("EXECUTORCH_ROOT", "GITHUB_WORKSPACE", "BUILD_WORKSPACE_DIRECTORY")
    roots = [Path(environment[name]).expanduser() for name in names if environment.get(name)]
    package = importlib.util.find_spec("executorch")
    places = list(package.submodule_search_locations or ()) if package is not None else []
    parents = [folder, *folder.parents, *(parent for place in places for parent in Path(place).parents)]
    roots += [parent for parent in parents if (parent / "arm_test").exists() or (parent / "examples/arm").is_dir()]
    return list(dict.fromkeys(root.resolve() for root in roots))


def time_limit(environment: Mapping[str, str]) -> float:
    """Seconds that one run may take.

    :raises BadInput: the variable holds no such number.
    """
    text = environment.get(TIME_LIMIT_VARIABLE)
    if not text:
        return TIME_LIMIT
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= LONGEST_LIMIT:
        raise BadInput(TIME_LIMIT_VARIABLE, f"{text!r} is no time limit", f"set seconds, at most {LONGEST_LIMIT:g}")
    return seconds
