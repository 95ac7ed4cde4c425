"""Corrections as a unified diff for the ExecuTorch repository, and a copy of the package that it was applied to.

Paths are the repository's: ``backends/arm/…`` for the installed ``executorch/backends/arm/…``. The diff is
made from the same edited text that ``harness.corrections.applying`` compiles.

``patched_package`` applies the diff with ``git apply``, as a maintainer would, to the installed files in a
scratch folder, and lays the result over the installed package: a tree of links to it, in which only the
patched files are real. Whoever has that folder first on its path imports the patched release.
"""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.case.errors import CannotRun
from harness.compat.sources import file_of
from harness.corrections.correction import Correction
from harness.corrections.source import Edited, edited_modules

PACKAGE = "executorch"


def diff_of(corrections: Sequence[Correction]) -> str:
    """The unified diff, ending with a newline; empty if the installed release needs none of them.

    :raises CannotRun: the code is not what a correction was written for.
    """
    return "".join(_diff(item) for item in edited_modules(corrections) if item.before != item.after)


def _diff(item: Edited) -> str:
    return diff_of_file(_path(item), item.before, item.after)


def diff_of_file(path: Path, before: str, after: str) -> str:
    """The unified diff of one file of the repository, as git writes it."""
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return f"diff --git a/{path} b/{path}\n{''.join(difflib.unified_diff(old, new, f'a/{path}', f'b/{path}'))}"


def _path(item: Edited) -> Path:
    return repository_path(item.module)


def repository_path(module: str) -> Path:
    """A module's file in the repository.

    :raises CannotRun: it is another repository's.
    """
    words = module.split(".")
    if words[0] != PACKAGE:
        raise CannotRun(f"{module} is not in the ExecuTorch repository; correct it upstream in its own")
    return Path(*words[1:-1], file_of(module).name)


def patched_package(corrections: Sequence[Correction], patch: Path, scratch: Path) -> Path:
    """Apply a diff and make a package of the result.

    :param patch: the file with the diff.
    :param scratch: an empty folder.
    :returns: the folder to put first on the path.
    :raises CannotRun: git is missing, or does not accept the diff.
    """
    repository, site = scratch / "repository", scratch / "site"
    modules = edited_modules(corrections)
    for item in modules:
        file = repository / _path(item)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(item.before)
    try:
        for words in (("init", "--quiet"), ("apply", "--verbose", str(patch.resolve()))):
            done = subprocess.run(["git", *words], cwd=repository, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CannotRun(
                    f"{patch}: git {words[0]} refuses: {done.stderr.strip()}; the correction needs a renewal"
                )
    except FileNotFoundError:
        raise CannotRun("git is not installed, and a patch is certified with 'git apply'; install git") from None
    installed = next(folder for folder in file_of(modules[0].module).parents if folder.name == PACKAGE)
    shutil.copytree(installed, site / PACKAGE, copy_function=_link, ignore=shutil.ignore_patterns("__pycache__"))
    for item in modules:
        file = site / PACKAGE / _path(item)
        file.unlink()
        shutil.copyfile(repository / _path(item), file)
    return site


def _link(source: str, target: str) -> str:
    os.symlink(source, target)
    return target
