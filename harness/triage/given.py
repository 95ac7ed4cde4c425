"""What a run takes as known beside the corpus: ``--known`` and ``--ignore``.

``--known`` takes a corpus folder (or one entry of it), the JSON results of an earlier run, whose findings are
then known, or a text file with a bucket on each line (``#`` begins a comment). A bucket that is given so is
known on every target and every release, whatever the operators; a final key counts as its coarse one. Of the entries of
a folder that is given so, whatever looks like their bugs is known, without a proof: the user says so.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.case.errors import BadInput
from harness.triage.buckets import BUCKET_VERSION
from harness.triage.corpus import Entry, Expectation, Status, entries
from harness.triage.program_entries import program_entries


def known_entries(
    folders: Sequence[Path], known: Sequence[Path] = (), ignored: Sequence[str] = (), *, vela: str | None = None
) -> list[Entry]:
    """Entries of the corpus and its programs, and of what the command line gives.

    :param folders: the checkout's corpus, if there is one.
    :param vela: the version of Vela that the programs are known of; None: the installed one.
    :raises BadInput: naming the file, or the option, and what is wrong with it.
    """
    found = [item.parent if item.name == "status.toml" else item for item in known if _is_corpus(item)]
    files = [item for item in known if not _is_corpus(item)]
    return [
        *entries(folders),
        *(program_entries(vela, reduced=True) if folders else ()),
        *(msgspec.structs.replace(entry, given=True) for entry in entries(found)),
        *(_entry(bucket, str(file)) for file in files for bucket in _buckets(file)),
        *(_entry(checked_bucket(bucket, "--ignore"), "--ignore") for bucket in ignored),
    ]


def _is_corpus(path: Path) -> bool:
    return path.is_dir() or path.name == "status.toml" or not path.exists()  # ``entries`` says that it is missing


def _buckets(file: Path) -> Iterable[str]:
    text = text_of(file, "give a corpus folder, JSON results or a list")
    if text.lstrip().startswith("{"):
        try:
            found = json.loads(text)["findings"]
            return [checked_bucket(item["bucket"], f"{file}: findings") for item in found]
        except (ValueError, KeyError, TypeError):
            raise BadInput(str(file), "holds no findings", "give what 'armdiff fuzz --json FILE' wrote") from None
    return [checked_bucket(line, where) for where, line in listed(text, file)]


def text_of(file: Path, remedy: str) -> str:
    """The text of a file that somebody gave.

    :raises BadInput: it cannot be read, or is no text.
    """
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadInput(str(file), f"cannot be read ({reason})", remedy) from None


def listed(text: str, file: Path) -> list[tuple[str, str]]:
    """The lines of a list without comments (``#``) and empty ones, each after the words that say where it stands."""
    lines = [(number, line.partition("# ")[0].strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [(f"{file}: line {number}", line) for number, line in lines if line and not line.startswith("#")]


def checked_bucket(bucket: str, where: str) -> str:
    """The coarse key of a bucket that someone gave.

    :raises BadInput: it is none.
    """
    coarse = bucket.partition("#")[0]
    if not coarse.startswith(f"{BUCKET_VERSION}/") or coarse.count("/") < 6:
        raise BadInput(where, f"{bucket!r} is no bucket", f"write one as reports do: {BUCKET_VERSION}/numeric/…")
    return coarse


def _entry(bucket: str, origin: str) -> Entry:
    status = Status(title=f"known by {origin}", upstream=(origin,), expires=datetime.date.max)
    return Entry(Path(origin), status, Expectation(status="reproduces", bucket=bucket), given=True)
