"""Run the functional model on stored payloads and compare with the stored reference results.

Equal means equal as integers, element for element: the payload knows the size of an element but not
its type, and pads shapes with ones in front. A program is *exact* if every call on which the
reference model gave an answer is; one call is enough to be *different*.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.artifacts.vela import VelaPayload
from harness.ethosu.accelerator import ACCELERATORS, Accelerator
from harness.ethosu.checks.hazards import hazards
from harness.ethosu.machine import Execution, execute
from harness.ethosu.records import StreamError, StreamIssue, Unimplemented
from tests.exactness.explained import explanation_of
from tests.exactness.program import Program
from tests.exactness.store import Call, Compiled, Reference

Array = NDArray[Any]
EXACT, DIFFERENT, UNIMPLEMENTED, STOPPED, RAISED, VELA, REFERENCE = (
    "exact",
    "different",
    "unimplemented",
    "stream error",
    "exception",
    "refused by Vela",
    "refused by the reference model",
)
COMPARED = (EXACT, DIFFERENT)
WRONG = (DIFFERENT, UNIMPLEMENTED, STOPPED, RAISED)


class Issue(msgspec.Struct, frozen=True):
    """A stream issue as data."""

    kind: str
    certain: bool
    message: str


class Verdict(msgspec.Struct, frozen=True):
    """What became of one program on one target.

    :param outcome: one of the words above.
    :param detail: one line: the first difference, or who refused and why.
    :param calls: calls that were compared.
    :param seconds: the model's time for all of them, hazards included.
    :param explained: name of the entry in ``explained`` that covers what went wrong.
    """

    name: str
    group: str
    target: str
    configuration: str
    operators: tuple[str, ...]
    outcome: str
    detail: str = ""
    calls: int = 0
    issues: tuple[Issue, ...] = ()
    seconds: float = 0.0
    explained: str = ""


def judge(program: Program, configuration: str, target: str, compiled: Compiled, reference: Reference) -> Verdict:
    """Compare one program on one target."""
    started = time.perf_counter()

    def verdict(outcome: str, detail: str = "", calls: int = 0, issues: Sequence[StreamIssue] = ()) -> Verdict:
        known = explanation_of(decode_tosa(program.tosa).main, target, detail) if outcome in WRONG else None
        found = {(item.kind, item.certain): Issue(item.kind, item.certain, item.message) for item in reversed(issues)}
        return Verdict(
            program.name,
            program.group,
            target,
            configuration,
            program.operators,
            outcome,
            detail,
            calls,
            tuple(found.values()),
            round(time.perf_counter() - started, 4),
            known.name if known else "",
        )

    if compiled.refused:
        return verdict(VELA, compiled.refused)
    answered = [call for call in reference.calls if not call.refused]
    if not answered:
        return verdict(REFERENCE, reference.calls[0].refused)
    accelerator = ACCELERATORS[target]
    block = decode_tosa(program.tosa).main
    issues: list[StreamIssue] = []
    try:
        payload = payload_of_npz(compiled.payload)
        for number, call in enumerate(answered):
            execution = run_call(payload, block, call, accelerator)
            if not number:
                issues += [*execution.issues, *hazards(execution.steps, accelerator)]
            if execution.stopped is not None:
                outcome = UNIMPLEMENTED if isinstance(execution.stopped, Unimplemented) else STOPPED
                return verdict(outcome, str(execution.stopped), issues=issues)
            difference = first_difference(execution.outputs or (), call)
            if difference:
                return verdict(DIFFERENT, f"{difference} (call {number})", number + 1, issues)
    except StreamError as error:
        outcome = UNIMPLEMENTED if isinstance(error, Unimplemented) else STOPPED
        return verdict(outcome, str(error), issues=issues)
    except Exception as error:  # noqa: BLE001 - the table reports whatever the model raises
        place = traceback.extract_tb(error.__traceback__)[-1]
        return verdict(RAISED, f"{type(error).__name__}: {error} ({place.name}:{place.lineno})", issues=issues)
    return verdict(EXACT, "", len(answered), issues)


def run_call(payload: VelaPayload, block: TosaBlock, call: Call, accelerator: Accelerator) -> Execution:
    """The model on one call's inputs: those that Vela kept, in their stored width."""
    arrays = [stored.array for stored in call.inputs]
    if not payload.inputs:  # what is multiplied by zeros does not count as read
        arrays = []
    elif len(payload.inputs) < len(arrays):
        live = live_inputs(block)
        arrays = [array for array, name in zip(arrays, block.inputs, strict=True) if name in live]
    return execute(payload, arrays, accelerator)


def live_inputs(block: TosaBlock) -> set[str]:
    """Names from which an output can be reached."""
    reached, todo = set(), list(block.outputs)
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            if name in block.producers:
                todo += block.producers[name].inputs
    return reached


def first_difference(outputs: Sequence[Array], call: Call) -> str:
    """The first element that differs, in words; empty if none does."""
    if len(outputs) != len(call.outputs):
        return f"{len(outputs)} outputs, the reference model returns {len(call.outputs)}"
    for index, (output, wanted) in enumerate(zip(outputs, (item.array for item in call.outputs), strict=True)):
        if output.size != wanted.size:
            return f"output {index} has shape {output.shape}, the reference model's {wanted.shape}"
        got, want = _integers(output).reshape(wanted.shape), _integers(wanted)
        differs = got != want
        if differs.any():
            place = tuple(int(axis) for axis in np.argwhere(differs)[0])
            count = int(np.count_nonzero(differs))
            worst = int(np.max(np.abs(got[differs] - want[differs])))
            return (
                f"output {index} {list(wanted.shape)} {wanted.dtype}: "
                f"{count} of {wanted.size} differ (by up to {worst}), "
                f"first at {list(place)}: {int(got[place])}, reference {int(want[place])}"
            )
    return ""


def _integers(array: Array) -> NDArray[np.int64]:
    return array.astype(np.int64)


def input_words(program: Program) -> str:
    """The inputs' shapes and types in words."""
    types = ", ".join(f"{item.dtype.lower()}{list(item.shape)}" for item in program.inputs)
    return types or "no inputs"
