"""The cases of upstream's tests, for a campaign: file after file, captured when its turn comes.

What was taken of a file is kept in the run's folder (``suite.jsonl``, a line a file), so that a resumed run captures
nothing twice. The number of a subject is made of its file's place in the selection and its place among the file's
subjects: both are the same whenever the same run goes on. Shard i of n has every n-th file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.campaign.campaign import STORED
from harness.campaign.run_folder import CASES, SUITE, cannot_write
from harness.case.errors import MALFORMED, BadInput
from harness.workers.pool import CaseRunner, Pool
from harness.workers.protocol import SuiteFile, SuiteTask

MOST = 10_000
"""More subjects than a file has."""
Subject = Mapping[str, str]
"""One subject's cases: target -> the case's file, by name."""


@dataclass
class UpstreamTests:
    """The source of cases (``harness.campaign.campaign.Source``).

    :param files: all files of the selection, as paths from upstream's test folder.
    :param words: only tests whose name has one of them (none: all).
    :param targets: what cases are made for.
    :ivar taken: what was taken of the files so far, in their order.
    """

    files: Sequence[str]
    words: tuple[str, ...]
    targets: tuple[str, ...]
    shard: tuple[int, int]
    out: Path
    taken: list[SuiteFile] = field(default_factory=list)

    def __call__(self, pool: CaseRunner) -> Iterator[tuple[int, list[tuple[int, Path]]]]:
        """Numbers of subjects, each with its cases' files and the places of their targets."""
        assert isinstance(pool, Pool)
        before = {item.file: item for item in read_taken(self.out)}
        seen: set[tuple[str, ...]] = set()
        index, count = self.shard
        for place, file in list(enumerate(self.files))[index - 1 :: count]:
            taken = before.get(file)
            if taken is None:
                taken = pool.take(
                    SuiteTask(file=file, folder=str(self.out / CASES), targets=self.targets, words=self.words)
                )
                _append(self.out, taken)
            self.taken.append(taken)
            for number, cases in enumerate(subjects(taken)):
                if (key := tuple(cases.values())) not in seen:
                    seen.add(key)
                    paths = [(self.targets.index(name), self.out / CASES / case) for name, case in cases.items()]
                    yield STORED + place * MOST + number, paths


def subjects(taken: SuiteFile) -> list[Subject]:
    """The different subjects of a file, in the order of its tests."""
    return list({tuple(test.cases.values()): test.cases for test in taken.tests if test.cases}.values())


def read_taken(folder: Path) -> list[SuiteFile]:
    """What a run took of upstream's files; nothing if it took none.

    :raises BadInput: a line is damaged.
    """
    file = folder / SUITE
    if not file.exists():
        return []
    found: list[SuiteFile] = []
    *whole, _ = file.read_bytes().split(b"\n")  # what follows the last line break was cut off, or is nothing
    for number, line in enumerate(whole, 1):
        try:
            found.append(msgspec.json.decode(line, type=SuiteFile))
        except MALFORMED as error:
            raise BadInput(f"{file}: line {number}", str(error), "remove the line; the file is taken again") from None
    return found


def _append(folder: Path, taken: SuiteFile) -> None:
    try:
        with (folder / SUITE).open("ab") as stream:
            stream.write(msgspec.json.encode(taken) + b"\n")
    except OSError as error:
        raise cannot_write(folder, error) from None
