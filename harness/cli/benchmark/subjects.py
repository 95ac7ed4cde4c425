"""What a benchmark is run on: generated graphs, and four small models (``harness.cli.benchmark.models``).

Generated graphs are those that ``armdiff fuzz`` draws for a seed, in its order. The models are captured like a
user's file, once; the cases for further targets share the tensors. Cases are written before anything runs, so that
a subject can be looked at, replayed and reduced like any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.campaign.campaign import Options, graph_cases, write_case
from harness.case.case import encode_case
from harness.case.errors import CannotRun
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.workers.pool import Pool
from harness.workers.protocol import CaptureTask

MODELS = ("convolutional", "residual", "attention", "mobilenet")
"""Files of ``harness/cli/benchmark/models``, without their ending."""


@dataclass(frozen=True)
class Subject:
    """One graph as a case for each target.

    :param name: the first case's digest, or a model's name.
    """

    name: str
    cases: tuple[Path, ...]


def drawn(count: int, targets: Sequence[str], seed: int, folder: Path) -> list[Subject]:
    """The first graphs that a campaign with this seed would run."""
    options = Options(targets, max_examples=count, seed=seed, out=folder)
    found = []
    for _, cases in graph_cases(options):
        files = tuple(write_case(case, folder / "cases") for case in cases)
        found.append(Subject(files[0].stem, files))
    return found


def models(targets: Sequence[str], folder: Path) -> list[Subject]:
    """The models, captured into ``folder`` by a worker.

    :raises CannotRun: one cannot be captured.
    """
    found = []
    with Pool(1) as pool:
        for name in MODELS:
            file, place = Path(__file__).parent / "models" / f"{name}.py", folder / "models" / name
            recipes = ["a8w8" if parse_target(target).quantized else "float" for target in targets]
            task = CaptureTask(file=str(file), folder=str(place), target=targets[0], recipe=recipes[0])
            captured = pool.capture(task)
            if captured.problem is not None:
                raise CannotRun(f"{captured.problem}; leave the models out with --no-models")
            case, files = read_case(place), []
            for target, recipe in zip(targets, recipes, strict=True):
                files.append(place / f"{target}.json")
                files[-1].write_bytes(encode_case(msgspec.structs.replace(case, recipe=recipe, target=target)))
            found.append(Subject(name, tuple(files)))
    return found
