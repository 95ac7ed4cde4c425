"""Corrections as a diff against a checkout of the ExecuTorch repository, whose code may differ from the installed one.

An edit applies if its text still occurs once in its place. Whether what stands around it still means the same is for a
person to say: a place whose digest differs from the installed release's is named.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from harness.case.errors import BadInput
from harness.compat.releases import installed
from harness.compat.sources import digest_of, source_of
from harness.corrections.correction import Correction
from harness.corrections.patch import PACKAGE, diff_of_file, repository_path
from harness.corrections.source import NotOnce, edited

BELOW = Path("backends", "arm")


@dataclass(frozen=True)
class Applied:
    """What a checkout makes of one correction.

    :param diff: the unified diff; empty if it does not apply.
    :param why: why not.
    :param moved: places whose code differs from that of the installed release, though the edits still apply.
    """

    diff: str = ""
    why: str = ""
    moved: tuple[str, ...] = ()


def checked_out(folder: Path) -> Path:
    """A folder, if it is a checkout of the repository.

    :raises BadInput: it is not.
    """
    if not (folder / BELOW).is_dir():
        raise BadInput(f"--source {folder}", f"holds no {BELOW}", f"give a checkout of the {PACKAGE} repository")
    return folder


def commit_of(folder: Path) -> str:
    """The commit that is checked out, short, with its date; or the folder's name where git knows none."""
    words = ["git", "-C", str(folder), "log", "-1", "--format=%h of %cs"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return folder.resolve().name
    return done.stdout.strip() if done.returncode == 0 else folder.resolve().name


def applied_to(folder: Path, correction: Correction) -> Applied:
    """The diff of one correction for a checkout."""
    release = installed().get("executorch", "")
    found = Applied()
    texts: dict[Path, tuple[str, str]] = {}
    for change in correction.for_release(release):
        path = repository_path(change.module)
        try:
            before, text = texts.get(path) or ((folder / path).read_text(),) * 2
        except OSError:
            return Applied(why=f"{path} is not there")
        source = source_of(before, change.place)
        if source is None:
            return Applied(why=f"{path} has no {change.place}")
        if digest_of(source) != change.digests[release]:
            found = replace(found, moved=(*found.moved, f"{path}: {change.place}"))
        try:
            texts[path] = (before, edited(change, text))
        except NotOnce:
            return Applied(why=f"{change.place} in {path} is other code now: see whether the bug is gone")
    diffs = (diff_of_file(path, before, after) for path, (before, after) in texts.items())
    return replace(found, diff="".join(diffs))


def in_words(found: Applied, commit: str) -> str:
    """What a checkout makes of a correction, in a sentence.

    :param commit: as ``commit_of`` names it.
    """
    if found.why:
        return f"It does not apply to {commit}: {found.why}."
    moved = f"; look at {', '.join(found.moved)}, which differs from the release" if found.moved else ""
    return f"It applies to {commit}{moved}."
