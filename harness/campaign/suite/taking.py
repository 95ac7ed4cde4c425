"""In a worker: capture what upstream's tests in one file are about, as cases with tensors.

Tests of the same module, inputs and recipe (upstream has one for each of its targets) give the same case: its name is
the digest of what it holds.

Imports torch and executorch, and runs upstream's tests up to their pipeline; runs in worker processes only.
"""

from __future__ import annotations

import faulthandler
import hashlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from safetensors.numpy import save

from harness.campaign.campaign import write_case
from harness.case.errors import BadInput, OwnFault
from harness.case.recipe import parse_recipe
from harness.case.target import parse_target
from harness.workers.capture import captured_model
from harness.workers.protocol import SuiteFile, SuiteTask, SuiteTest

if TYPE_CHECKING:
    from harness.compat.suite import Subject


def take(task: SuiteTask, announce: Callable[[str], None]) -> SuiteFile:
    """Capture the subjects of a file; a test of which there is none is told with its reason.

    :raises BadInput: pytest cannot collect the file.
    """
    from harness.compat.suite import collect

    taken: list[SuiteTest] = []
    announce("capture")
    faulthandler.dump_traceback_later(task.seconds, exit=True)
    try:
        missed = collect(
            [task.file],
            lambda subject: taken.append(_taken(subject, task)),
            wanted=lambda test: not task.words or any(word in test for word in task.words),
        )
    finally:
        faulthandler.cancel_dump_traceback_later()
    taken += [SuiteTest(test=item.test, why=item.why) for item in missed]
    return SuiteFile(file=task.file, tests=tuple(taken))


def _taken(subject: Subject, task: SuiteTask) -> SuiteTest:
    """One test as cases, or the reason why there are none."""
    told = SuiteTest(test=subject.test, recipe=subject.recipe, other=subject.other, expected=subject.expected)
    targets = [name for name in task.targets if parse_target(name).quantized == _quantizes(subject.recipe)]
    if not targets:
        return msgspec.structs.replace(told, why=f"no chosen target takes its recipe, {subject.recipe}")
    names = {"model": subject.model, "calibration": [subject.inputs]}
    try:
        made = captured_model(names, subject.test, targets[0], subject.recipe)
    except BadInput as error:
        return msgspec.structs.replace(told, why=str(error).removeprefix(f"{subject.test}: "))
    except Exception as error:  # noqa: BLE001 - one test must not cost the file its others
        traceback.print_exc()
        return msgspec.structs.replace(told, why=str(OwnFault(error, "capturing it")))
    data = save(made.tensors)
    tensors = f"{hashlib.sha256(data).hexdigest()[:12]}.safetensors"
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / tensors).write_bytes(data)
    cases = {
        name: write_case(msgspec.structs.replace(made.case, target=name, tensors=tensors), folder).name
        for name in targets
    }
    return msgspec.structs.replace(told, cases=cases)


def _quantizes(recipe: str) -> bool:
    return parse_recipe(recipe).widths != "float"
