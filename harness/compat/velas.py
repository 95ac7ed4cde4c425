"""Other versions of Vela than the installed one, each in a folder of armdiff's cache.

``vela_folder`` installs a version on request: ``pip install --no-deps --target``, since Vela's dependencies (numpy,
flatbuffers, lxml) are those of every version and are installed already. The folder is
``$XDG_CACHE_HOME/armdiff/velas/VERSION`` (``~/.cache`` without the variable); it appears under its name only when it
is complete. ``use_vela`` puts it in front of a process's search path, which works before Vela's native core is
imported, and only then: a process holds one Vela.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from harness.case.errors import BadInput, CannotRun
from harness.compat.releases import installed

PACKAGE = "ethos-u-vela"
_VERSION = re.compile(r"\d+(\.\d+)+((a|b|rc|\.post|\.dev)\d+)*")
_PATIENCE = 600.0


def vela_folder(version: str) -> Path | None:
    """Where a version of Vela lies, installed there if it is not yet; None for the one that is installed anyway.

    :raises BadInput: no version.
    :raises CannotRun: it cannot be installed, with pip's last words.
    """
    if not _VERSION.fullmatch(version):
        raise BadInput("--vela", f"{version!r} is no version", "give one of ethos-u-vela, for example 5.2.0")
    if installed().get(PACKAGE) == version:
        return None
    folder = velas_folder() / version
    if not folder.is_dir():
        _install(version, folder)
    return folder


def velas_folder() -> Path:
    """The folder of armdiff's cache with a folder for each version."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return Path(cache if cache and os.path.isabs(cache) else Path.home() / ".cache") / "armdiff" / "velas"


def _install(version: str, folder: Path) -> None:
    """Into a folder beside it, then renamed."""
    by_hand = f"or try 'pip install --no-deps --target {folder} {PACKAGE}=={version}' yourself"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{version}-", dir=folder.parent, ignore_cleanup_errors=True
        ) as beside:
            made = Path(beside, version)
            words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(made)]
            done = subprocess.run(
                [sys.executable, "-m", "pip", *words, f"{PACKAGE}=={version}"],
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
            )
            if done.returncode:
                said = [line for line in done.stderr.splitlines() if line.strip()]
                raise CannotRun(
                    f"{PACKAGE} {version} cannot be installed into {folder}: {(said or ['pip failed'])[-1].strip()}; "
                    f"leave out '--vela {version}', {by_hand}"
                )
            if not folder.is_dir():  # another run was faster
                made.rename(folder)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"pip takes more than {_PATIENCE:g} s to install {PACKAGE} {version}; {by_hand[3:]}") from None
    except OSError as error:
        raise CannotRun(
            f"{folder} cannot be written ({error.strerror}); set XDG_CACHE_HOME to a folder that can"
        ) from None


def use_vela(folder: Path) -> None:
    """Make this process take its Vela from a folder.

    :raises RuntimeError: it has imported one already, or the folder holds none.
    """
    if "ethosu" in sys.modules:
        raise RuntimeError("this process has imported Vela already, and a process holds one only")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    installed.cache_clear()
    if not any(metadata.distributions(name=PACKAGE, path=[str(folder)])):
        raise RuntimeError(f"{folder} holds no {PACKAGE}; remove it, and armdiff installs it again")
