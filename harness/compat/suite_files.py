"""Where the installed wheel has upstream's tests of the Arm backend, and which of its files a selection means.

``executorch/backends/arm/test`` is in the wheels (seen in 1.3.1 to 1.5.1). Nothing of it is imported here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from harness.case.errors import BadInput, CannotRun

FOLDERS = ("ops", "models", "modules", "passes", "misc")
"""The folders of tests that build a module, run it through a pipeline and compare values."""


def upstream_tests() -> Path:
    """The folder of the tests.

    :raises CannotRun: the installed executorch has none.
    """
    spec = importlib.util.find_spec("executorch")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place, "backends", "arm", "test")
        if folder.is_dir():
            return folder
    raise CannotRun(
        "the installed executorch has no backends/arm/test; install a release whose wheel has it, such as 1.5.1"
    )


def selected_files(folder: Path, paths: Sequence[str]) -> list[str]:
    """Test files below the folder, as paths from it, each once and in order.

    :param paths: files or folders, as paths from it; none: all of ``FOLDERS``.
    :raises BadInput: there is no test file at one of them.
    """
    found: list[str] = []
    for path in paths or [name for name in FOLDERS if (folder / name).is_dir()]:
        place = folder / path
        files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        inside = [file for file in files if file.is_relative_to(folder) and ".." not in file.parts]
        if not inside:
            raise BadInput(path, f"is no test file or folder of {folder}", "give for example ops or ops/test_add.py")
        found += [str(file.relative_to(folder)) for file in inside]
    return list(dict.fromkeys(found))
