"""A run's folder: what a campaign was asked for and what it has done so far, on disk at every moment.

::

    OUT/run.json         what was asked for, on which releases, since when; how it ended
    OUT/cases/           every case, written before it runs
    OUT/results.jsonl    one line a case, written when it is done
    OUT/buckets.jsonl    one line a bucket that was minimized
    OUT/suite.jsonl      of 'armdiff suite': one line a test file, what was taken of its tests
    OUT/bugs/<name>/     a bucket's smallest case, repro.py, REPORT.md and status.toml
    OUT/previous/        the run that was here before

Lines are appended whole, and a last line that a kill cut off is ignored. So whatever ends a run, its folder
can be reported on and resumed. Cases are numbered through the run: graph ``g`` on target ``t`` of ``n`` is case
``g * n + t``, which makes a resumed run go on where it was.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from harness.campaign.replay_command import Again
from harness.case.errors import MALFORMED, BadInput, CannotRun
from harness.compat.releases import Basis, basis_of, name_of
from harness.pipeline.engines import EngineChoice
from harness.pipeline.probes import ProbeMode
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult

SCHEMA = 1
INFO, RESULTS, BUCKETS, CASES, BUGS = "run.json", "results.jsonl", "buckets.jsonl", "cases", "bugs"
SUITE = "suite.jsonl"
PREVIOUS = "previous"

State = Literal["running", "done", "interrupted"]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign was asked for: what a resumed run needs to be the same run.

    :param max_examples: graphs to draw, all shards together; None: until the time is over.
    :param seconds: time limit with minimization and reports, or None.
    :param shard: (index from 1, count).
    :param expect: the release line whose expectations hold if the installed packages form none; empty: none do.
    :param steer: were only the rarest graphs run (``harness.campaign.steering``)?
    :param suite: the paths of upstream's tests that run; None: graphs are drawn (``harness.campaign.suite``).
    :param words: of those tests, only the ones whose name has one of these words (none: all).
    :param sources: what was mutated (``harness.campaign.mutating``); none: graphs are drawn.
    """

    targets: tuple[str, ...]
    max_examples: int | None = None
    seconds: float | None = None
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    probes: ProbeMode = "default"
    strict: bool = False
    ethos_u_engine: EngineChoice = "default"
    corrections: tuple[str, ...] = ()
    expect: str = ""
    steer: bool = False
    suite: tuple[str, ...] | None = None
    words: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def verb(self) -> str:
        """The verb that runs it."""
        return "fuzz" if self.suite is None else "suite"

    @property
    def in_turn(self) -> bool:
        """Does a graph run on one target, the targets in turn? As long as there is time, another graph shows more."""
        return self.max_examples is None and self.suite is None

    @property
    def shard_name(self) -> str:
        """``3/8``."""
        index, count = self.shard
        return f"{index}/{count}"

    @property
    def again(self) -> Again:
        """The options that it takes to see a finding again."""
        return Again(self.corrections, self.ethos_u_engine, self.probes)


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of ``run.json``.

    :param started: seconds since the epoch; ``ended`` likewise, None while it runs (or if it was killed).
    :param seconds: wall time of all sittings, resumed ones included.
    :param cases: lines of ``results.jsonl`` when it ended; None while it runs (or if it was killed).
    :param left: what the time was too short for, a sentence each.
    """

    schema: int = SCHEMA
    armdiff: str
    releases: dict[str, str]
    line: str | None
    asked: Asked
    started: float
    ended: float | None = None
    seconds: float = 0.0
    state: State = "running"
    cases: int | None = None
    left: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def judged_as(self) -> Basis:
        """Whose expectations hold for the run."""
        return basis_of(self.releases, self.asked.expect)

    @property
    def line_name(self) -> str:
        """The release line for people; packages that form none by the nearest line and what differs from it."""
        return self.line or name_of(self.releases)


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``results.jsonl``.

    :param number: the case's number in the run.
    :param at: seconds since the run started (earlier sittings' seconds included).
    """

    number: int
    at: float
    result: CaseResult


SMALLEST_IS = "its smallest case shows the known bug"
"""Said of a new bucket that was cut down to a known bug: a bug of its own may have been lost on the way."""


class Minimized(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``buckets.jsonl``: what became of the smallest case of a coarse bucket.

    :param bucket: the coarse key; ``final`` adds the operators of the smallest case.
    :param origin: the case that showed it, as a path relative to the run's folder; ``case`` is the smallest one.
    :param operators: the operators of the smallest case, in order.
    :param state: ``minimized`` (no cut helps any more), ``stopped`` (out of time), ``lost`` (did not show again).
    :param neighbour: the smallest case tried that does not show it, or None, and what distinguishes it.
    :param folder: its folder below ``bugs``, empty if no report was written.
    :param repro: what repro.py did in a fresh process: ``shows``, ``does not show``, or why it did not run.
    :param finding: what the smallest case shows, of the same cause, known if that is proved of this case; None if it
        was lost, or in an older run.
    """

    bucket: str
    final: str
    origin: str
    case: str
    operators: tuple[str, ...]
    state: Literal["minimized", "stopped", "lost"]
    tries: int = 0
    seconds: float = 0.0
    neighbour: str | None = None
    distinguishes: str = ""
    folder: str = ""
    repro: str = ""
    finding: Finding | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run's folder, read."""

    folder: Path
    info: RunInfo
    done: tuple[Done, ...]
    minimized: tuple[Minimized, ...]


_Line = TypeVar("_Line", Done, Minimized)


def read_run(folder: Path) -> Run:
    """Read a run's folder.

    :raises BadInput: it is none, or a file in it is damaged.
    """
    file = folder / INFO
    try:
        info: RunInfo = msgspec.json.decode(file.read_bytes(), type=RunInfo)
    except OSError as error:
        raise BadInput(
            str(folder),
            f"is no run's folder ({INFO}: {error.strerror})",
            "give the --out of 'armdiff fuzz' or 'armdiff suite'",
        ) from None
    except MALFORMED as error:
        raise BadInput(str(file), str(error), "start the run anew with another --out") from None
    if info.schema != SCHEMA:
        raise BadInput(f"{file}: schema", f"is {info.schema}, not {SCHEMA}", "use the armdiff that wrote it")
    done = {item.number: item for item in _lines(folder / RESULTS, Done)}
    minimized = {item.bucket: item for item in _lines(folder / BUCKETS, Minimized)}
    ordered = tuple(done[number] for number in sorted(done))
    return Run(folder=folder, info=info, done=ordered, minimized=tuple(minimized.values()))


def read_evidence(folder: Path) -> Run:
    """Read a run's folder as evidence: all that it says to hold must be there.

    :raises BadInput: it is no run's folder, or damaged.
    """
    run = read_run(folder)
    if run.info.cases not in (None, len(run.done)):
        raise BadInput(
            str(folder / RESULTS),
            f"holds {len(run.done)} of the {run.info.cases} cases that {INFO} counts",
            "fetch the folder again, or run what is missing with "
            f"'armdiff {run.info.asked.verb} --resume --out {folder}'",
        )
    return run


def unfinished(run: Run) -> str | None:
    """Why a run says nothing about all that it was asked for, or None."""
    goes_on = f"'armdiff {run.info.asked.verb} --resume --out {run.folder}' goes on"
    if run.info.state == "running":
        return f"{run.folder}: has not ended: it still runs, or was killed; {goes_on}"
    if run.info.state == "interrupted":
        return f"{run.folder}: was interrupted after {len(run.done)} cases; {goes_on}"
    if not run.done and run.info.asked.max_examples is None and run.info.asked.suite is None:
        return f"{run.folder}: ended before its first case was done; give it more --time"
    return None


def previous_run(folder: Path, given: Path | None = None) -> Run | None:
    """The run to compare with: the one that is given, or the one that was in the folder before, or None."""
    if given is None and not (folder / PREVIOUS / INFO).exists():
        return None
    return read_run(given or folder / PREVIOUS)


def _lines(file: Path, kind: type[_Line]) -> Iterator[_Line]:
    if not file.exists():
        return
    *whole, _ = file.read_bytes().split(b"\n")  # what follows the last line break was cut off, or is nothing
    for number, line in enumerate(whole, 1):
        try:
            yield msgspec.json.decode(line, type=kind)
        except MALFORMED as error:
            raise BadInput(f"{file}: line {number}", str(error), "remove the line; its case will run again") from None


def write_info(folder: Path, info: RunInfo) -> None:
    """Write ``run.json``; whoever reads it sees the old one or the new one.

    :raises CannotRun: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{INFO}.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")
        os.replace(fresh, folder / INFO)
    except OSError as error:
        raise cannot_write(folder, error) from None


def append(folder: Path, lines: Sequence[Done] | Sequence[Minimized]) -> None:
    """Append lines to the file of their kind, each whole.

    :raises CannotRun: the folder cannot be written, or the disk is full.
    """
    if not lines:
        return
    file = folder / (RESULTS if isinstance(lines[0], Done) else BUCKETS)
    data = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        with file.open("ab") as stream:
            before = stream.tell()
            try:
                stream.write(data)
                stream.flush()
            except OSError:
                with suppress(OSError):
                    os.truncate(file, before)  # half a line would hide the next one
                raise
    except OSError as error:
        raise cannot_write(folder, error) from None


def mended(folder: Path) -> None:
    """Cut off the half lines that a kill left, so that what is appended begins a line of its own."""
    for name in (RESULTS, BUCKETS, SUITE):
        if (folder / name).exists():
            cut_half_line(folder / name)


def cut_half_line(file: Path) -> None:
    """Cut off what follows a file's last line end."""
    if not (data := file.read_bytes()).endswith(b"\n"):
        os.truncate(file, data.rfind(b"\n") + 1)


def set_aside(folder: Path) -> None:
    """Move the run that a folder holds into ``previous/`` below it, in place of the one that is there.

    :raises CannotRun: the folder cannot be written.
    """
    if not (folder / INFO).exists():
        return
    previous = folder / PREVIOUS
    try:
        shutil.rmtree(previous, ignore_errors=True)
        previous.mkdir()
        for item in [*folder.iterdir()]:
            if item.name in (INFO, RESULTS, BUCKETS, BUGS, SUITE) or item.name.startswith("report."):
                os.replace(item, previous / item.name)
        (previous / CASES).symlink_to(Path("..") / CASES)
    except OSError as error:
        raise cannot_write(folder, error) from None


def cannot_write(folder: Path, error: OSError) -> CannotRun:
    return CannotRun(f"{folder}: cannot be written ({error.strerror}); give another --out, or free some space")
