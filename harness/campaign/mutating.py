"""The cases of ``fuzz --from``: mutants (``generators.mutants``) in the place of graphs drawn from nothing.

A *source* is ``suite`` (upstream's own tests), ``blocks`` (those of ``generators.blocks``), a ``.py`` file as ``check``
takes it, a case, or a folder with cases below it (a run, a corpus). What has to be captured is captured once, into the
run's folder, by the campaign's workers: a model before the first mutant, upstream's test files two for each block of
graphs, in an order that the seed tells, so that short campaigns do not all mutate what comes first in the alphabet. A
block's mutants have as parents what was read or captured, of upstream's tests ``FILES`` files. With ``blocks`` a block
of graphs begins with each block of networks as it is, drawn anew, and they are parents of the mutants behind it. The
tensors of a parent lie beside its mutants.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.campaign.campaign import Options, Source, drawn_graphs
from harness.campaign.run_folder import CASES, cannot_write
from harness.case.case import Case
from harness.case.errors import ArmdiffError, BadInput
from harness.case.reading import read_case
from harness.compat.suite_files import selected_files, upstream_tests
from harness.workers.pool import CaseRunner, Pool
from harness.workers.protocol import CaptureTask, SuiteTask

UPSTREAM = "suite"
NETWORKS = "blocks"
FILES = 3
"""Of upstream's tests that are parents of a block."""
NEW_FILES = 2
"""Of them that were no parents of the block before."""
_HOW = "give 'suite', 'blocks', a model's .py, a case, or a folder that holds cases"


def check_sources(words: Sequence[str]) -> None:
    """Say what is wrong with a source before anything runs.

    :raises BadInput: it is no file and no folder, or holds no case.
    """
    for word in words:
        if word in (UPSTREAM, NETWORKS):
            continue
        if not word.endswith(".py"):
            _read(Path(word))
        elif not Path(word).is_file():
            raise BadInput(f"--from {word}", "is no file", _HOW)


def mutated(options: Options, words: Sequence[str]) -> Source:
    """The source of a campaign that mutates."""

    def source(pool: CaseRunner) -> Iterator[tuple[int, Sequence[tuple[int, Case | Path]]]]:
        from generators.blocks import draw_blocks
        from generators.mutants import draw_mutants

        parents = Parents(options, words, pool)

        def block(seed: int, number: int, count: int, targets: Sequence[str]) -> Sequence[tuple[Case, ...]]:
            whole = draw_blocks(seed, number, targets)[:count] if NETWORKS in words else []
            found = [*parents.of_block(number), *(item[0] for item in whole)]
            return [*whole, *draw_mutants(found, seed, number, count - len(whole), targets)]

        yield from drawn_graphs(options, block)(pool)

    return source


@dataclass
class Parents:
    """What a campaign mutates.

    :ivar fixed: read from folders, and captured from models.
    :ivar taken: of upstream's tests: the place of a file in their order -> its cases.
    """

    options: Options
    words: Sequence[str]
    pool: CaseRunner
    fixed: list[Case] = field(default_factory=list, init=False)
    files: list[str] = field(default_factory=list, init=False)
    taken: dict[int, list[Case]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for word in self.words:
            if word == UPSTREAM:
                self.files = in_order(selected_files(upstream_tests(), ()), self.options.seed)
            elif word == NETWORKS:
                continue  # drawn with each block
            elif word.endswith(".py"):
                self.fixed.append(self._captured(word))
            else:
                self.fixed += [self._beside(file, case) for file, case in _read(Path(word))]

    @property
    def _folder(self) -> Path:
        return self.options.out / CASES

    def of_block(self, number: int) -> list[Case]:
        """The parents of a block: always the same ones, whatever was drawn before."""
        if not self.files:
            return self.fixed
        found = [*self.fixed]
        first = number * NEW_FILES
        for place in range(first, first + len(self.files)):
            if place >= first + FILES and len(found) > len(self.fixed):
                break
            found += self._of_file(place % len(self.files))
        if len(found) == len(self.fixed):
            raise BadInput("--from suite", "no test of upstream's gives a case", "see 'armdiff suite' for reasons")
        return found

    def _of_file(self, place: int) -> list[Case]:
        if place not in self.taken:
            task = SuiteTask(file=self.files[place], folder=str(self._folder), targets=tuple(self.options.targets))
            tests = self._own_pool.take(task).tests
            names = dict.fromkeys(next(iter(test.cases.values())) for test in tests if test.cases)
            cases = [read_case(self._folder / name) for name in names]
            self.taken[place] = [case for case in cases if case.graph.inputs and case.graph.nodes]
        return self.taken[place]

    def _captured(self, file: str) -> Case:
        task = CaptureTask(file=file, folder=str(self._folder), target=self.options.targets[0], recipe="a8w8")
        captured = self._own_pool.capture(task)
        if captured.problem is not None:
            raise ArmdiffError(captured.problem)
        return read_case(Path(captured.case))

    @property
    def _own_pool(self) -> Pool:
        if not isinstance(self.pool, Pool):
            raise BadInput("--from", "captures models, which nodes of a cluster do not", "give a folder with cases")
        return self.pool

    def _beside(self, file: Path, case: Case) -> Case:
        """The case with its tensors in the run's folder, under a name that no other file's have."""
        if case.tensors is None:
            return case
        try:
            data = (file.parent / case.tensors).read_bytes()
            name = f"{hashlib.sha256(data).hexdigest()[:12]}.safetensors"
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_bytes(data)
        except OSError as error:
            raise cannot_write(self._folder, error) from None
        return msgspec.structs.replace(case, tensors=name)


def in_order(files: Sequence[str], seed: int) -> list[str]:
    """Test files in an order that the seed tells, those of a folder together: single operators before whole models."""
    folders = list(dict.fromkeys(file.split("/")[0] for file in files))
    shuffled = random.Random(seed).sample(list(files), len(files))
    return sorted(shuffled, key=lambda file: folders.index(file.split("/")[0]))


def _read(path: Path) -> list[tuple[Path, Case]]:
    """The cases of a file or below a folder, with their files.

    :raises BadInput: there is none.
    """
    if path.is_file():
        return [(path, read_case(path))]
    found = []
    for file in sorted(path.rglob("*.json")):
        try:
            case = read_case(file)
        except BadInput:
            continue  # results, reports, certificates
        if case.graph.inputs and (case.tensors is None or (file.parent / case.tensors).exists()):
            found.append((file, case))
    if not found:
        raise BadInput(f"--from {path}", "holds no case" if path.exists() else "does not exist", _HOW)
    return found
