"""Corrections as a unified diff for the repository, and a copy of the package that it was applied to.

Paths are the repository's: ``backends/arm/…`` for the installed ``executorch/backends/arm/…``, and ``torchao/…`` where
the quantizer is to be corrected (in pytorch/ao). The diff is
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
LEFT_OUT = {PACKAGE: 1, "torchao": 0}
"""Packages that are corrected -> how many words of a module's name its path in the repository leaves out."""


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
    """A module's file in its repository.

    :raises CannotRun: nobody knows where that is.
    """
    words = module.split(".")
    if words[0] not in LEFT_OUT:
        raise CannotRun(f"{module} is of no repository that a diff is made for; use one of {', '.join(LEFT_OUT)}")
    return Path(*words[LEFT_OUT[words[0]] : -1], file_of(module).name)


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
    for package, module in {item.module.split(".")[0]: item.module for item in modules}.items():
        installed = next(folder for folder in file_of(module).parents if folder.name == package)
        shutil.copytree(installed, site / package, copy_function=_link)  # what is compiled is compiled for links, too
    for item in modules:
        file = site.joinpath(*item.module.split(".")[:-1], file_of(item.module).name)
        file.unlink()
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*"):
            compiled.unlink()
        shutil.copyfile(repository / _path(item), file)
    return site


def _link(source: str, target: str) -> str:
    os.symlink(source, target)
    return target
