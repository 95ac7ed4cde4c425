"""What ``armdiff vela --from`` mutates: TOSA graphs of files, of folders, of the corpus and of campaigns.

A folder gives every ``.tosa`` file below it and every ``program.json`` without one. The folder of a run of ``fuzz`` or
``sweep`` gives the delegates of its cases for Ethos-U: a worker lowers each, which takes about a second a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.campaign.run_folder import CASES, INFO
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.cli.environment import need_environment
from harness.tosa.program import Program, decode
from harness.tosa.translating import from_flatbuffer
from harness.workers.pool import Pool
from harness.workers.protocol import EmitTask

MOST_CASES = 60
"""Cases of a run that are lowered."""
_JSON = "program.json"
_HOW = "give a program.json or a .tosa file"


def read_program(file: Path) -> Program:
    """A program of a file.

    :raises BadInput: it is none.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", _HOW) from None
    if file.suffix != ".tosa":
        return decode(data, str(file))
    try:
        return from_flatbuffer(data)
    except BadInput as error:
        raise error.inside(str(file)) from None


def read_seeds(paths: Sequence[Path], say: Callable[[str], None]) -> list[Program]:
    """The programs to mutate, each once, in the order of their files.

    :param say: told a line of progress while cases are lowered.
    :raises BadInput: a path gives none.
    """
    found: list[Program] = []
    for path in paths:
        programs = list(_programs(path, say))
        if not any(program.operators for program in programs):
            raise BadInput(str(path), "holds no TOSA graph of integers", "give a .tosa file, or a folder that has some")
        found += [item for item in programs if item.operators and item not in found]
    return found


def _programs(path: Path, say: Callable[[str], None]) -> Iterator[Program]:
    if not path.is_dir():
        yield read_program(path)
        return
    for file in sorted([*path.rglob("*.tosa"), *path.rglob(_JSON)]):
        if file.name == _JSON and file.with_suffix(".tosa").exists():
            continue
        try:
            yield read_program(file)
        except BadInput:
            continue  # control flow, or floats: nothing for an Ethos-U
    if (path / INFO).exists():
        yield from _of_run(path, say)


def _of_run(run: Path, say: Callable[[str], None]) -> Iterator[Program]:
    """The delegates of a run's cases, those of the first graphs."""
    files = sorted((run / CASES).glob("*.json"))
    chosen = [file for file in files if parse_target(read_case(file).target).ethos_u][:MOST_CASES]
    if not chosen:
        return
    need_environment()
    with Pool(1) as pool:
        for number, file in enumerate(chosen, 1):
            say(f"lowering case {number} of {len(chosen)} of {run}")
            for _, data in sorted(pool.emit(EmitTask(case=str(file))).tosa.items()):
                try:
                    yield from_flatbuffer(data)
                except BadInput:
                    continue  # floats
