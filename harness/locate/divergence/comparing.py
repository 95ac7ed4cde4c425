"""Compare a delegate's payload with its TOSA flatbuffer on a number of draws.

The reference is the TOSA reference model on the flatbuffer that Vela compiled. A draw on which its
status is not TOSA_VALID is refused and does not count; smaller numbers take the place of large ones that were drawn.
Integer arithmetic leaves no freedom: any
element that differs is a defect of the payload, of the reference model or of the functional model.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.artifacts.payload_io import PayloadIO, payload_io
from harness.artifacts.tosa import TosaBlock, decode_tosa
from harness.artifacts.vela import VelaPayload, decode_vela
from harness.case.arrays import Array
from harness.case.place import Fact
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.commands import decode_commands
from harness.ethosu.machine import execute
from harness.ethosu.records import Step, StreamError, StreamIssue, Unimplemented
from harness.locate.divergence.difference import Difference, difference
from harness.locate.divergence.draws import Draw, smaller
from harness.locate.divergence.explaining import Run, TooManyPlacements, explain
from harness.locate.divergence.origin import Origin, find_origin, unknown_origin
from harness.locate.divergence.reference import all_values
from harness.locate.divergence.replaying import Player, Program, program_of
from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer

MOST_ORIGINS = 4
"""Wrong outputs of a delegate whose first wrong step is looked for."""
_MOST_RUNS, _FEWER_RUNS, _LARGE = 4, 2, 1 << 21


@dataclass(frozen=True)
class WrongOutput:
    """One output of a delegate that is not what its TOSA graph says.

    :param origin: where that begins; None if it was not looked for.
    """

    difference: Difference
    origin: Origin | None = None


@dataclass(frozen=True)
class DelegateComparison:
    """What came of comparing one delegate.

    :param compared: draws with a valid reference on which the payload ran.
    :param refused: why others did not count.
    :param wrong: outputs that differ, each on the draw with the fewest wrong elements; fewest first.
    :param issues: of all draws, each once.
    :param stopped: why the stream could not be decoded or executed to its end; later draws were not run.
    :param unimplemented: it is the model that could not execute it.
    :param damaged: nothing was executed: the payload's tables contradict each other or the TOSA graph.
    :param fault: why armdiff itself could not compare it: no statement about the delegate.
    :param steps: of the first run.
    :param tensors: the TOSA tensor that each step makes, where there are issues to place and something tells.
    :param step_facts: what the registers say of the steps that issues are about.
    :param reference_seconds: processor time that the reference model took for the draws.
    """

    compared: int = 0
    refused: tuple[str, ...] = ()
    wrong: tuple[WrongOutput, ...] = ()
    issues: tuple[StreamIssue, ...] = ()
    stopped: str | None = None
    unimplemented: bool = False
    damaged: bool = False
    fault: str = ""
    steps: tuple[Step, ...] = ()
    tensors: Mapping[int, str] = field(default_factory=dict)
    step_facts: Mapping[int, Mapping[str, Fact]] = field(default_factory=dict)
    reference_seconds: float = field(default=0.0, compare=False)

    @property
    def difference(self) -> Difference | None:
        """Of the output and the draw with the fewest wrong elements."""
        return self.wrong[0].difference if self.wrong else None

    @property
    def origin(self) -> Origin | None:
        """Where that begins; None where nothing differs."""
        return self.wrong[0].origin if self.wrong else None


@dataclass(frozen=True)
class _Pair:
    draw: Draw
    wanted: list[Array]
    differences: list[Difference]


def compare_delegate(
    tosa: bytes, payload: bytes | VelaPayload, accelerator: str, draws: Sequence[Draw], *, origin: bool = True
) -> DelegateComparison:
    """Run a payload and its TOSA graph on every draw.

    :param payload: an ExecuTorch delegate's bytes, or those decoded (with the program's named data).
    :param accelerator: as Vela spells it.
    :param origin: whether to look for the first operation that differs.
    :raises BadInput: flatbuffer or payload are damaged, or are not of one graph.
    """
    decoded = payload if isinstance(payload, VelaPayload) else decode_vela(payload)
    configuration, io = accelerator_named(accelerator), payload_io(tosa, decoded)
    try:
        commands = decode_commands(decoded.commands, configuration)
    except StreamError as error:
        return DelegateComparison(stopped=str(error), unimplemented=isinstance(error, Unimplemented))
    pairs: list[_Pair] = []
    refused: list[str] = []
    issues: dict[StreamIssue, None] = {}
    steps: tuple[Step, ...] | None = None
    stopped: StreamError | None = None
    spent = 0.0
    waiting = [*reversed(draws)]

    def refuse(draw: Draw, why: str) -> None:
        if (other := smaller(draw)) is None:
            refused.append(why)
        else:
            waiting.append(other)

    while waiting:
        draw = waiting.pop()
        execution = execute(decoded, io.payload_inputs(draw.arrays), configuration, commands=commands)
        if execution.outputs is None and (undefined := _refusal(tosa, draw)):
            refuse(draw, undefined)
            continue
        issues |= dict.fromkeys(execution.issues)
        steps = execution.steps if steps is None else steps
        if execution.outputs is None:
            stopped = execution.stopped
            break
        got = io.tosa_outputs(execution.outputs)
        started = time.process_time()
        try:
            wanted = run_flatbuffer(tosa, draw.arrays)
        except (ReferenceModelError, ValueError) as error:  # ValueError: it does not accept the graph
            refuse(draw, f"{draw.name}: {error}")
            continue
        finally:
            spent += time.process_time() - started
        if problem := _incomparable(got, wanted):
            refused.append(f"{draw.name}: {problem}")
            continue
        found = (difference(index, *pair, draw.name) for index, pair in enumerate(zip(got, wanted, strict=True)))
        pairs.append(_Pair(draw, wanted, [item for item in found if item is not None]))
    worst: dict[int, Difference] = {}
    for item in sorted((item for pair in pairs for item in pair.differences), key=lambda item: item.elements):
        worst.setdefault(item.output, item)
    program = program_of(decoded, commands, configuration) if worst and origin else None
    runs: dict[int, Run] = {}
    wrong = [
        WrongOutput(
            item,
            _origin(tosa, program, io, pairs, steps or (), output, runs) if origin and place < MOST_ORIGINS else None,
        )
        for place, (output, item) in enumerate(worst.items())
    ]
    return DelegateComparison(
        compared=len(pairs),
        refused=tuple(refused),
        wrong=tuple(wrong),
        issues=tuple(issues),
        stopped=None if stopped is None else str(stopped),
        unimplemented=isinstance(stopped, Unimplemented),
        steps=steps or (),
        reference_seconds=spent,
    )


def _refusal(tosa: bytes, draw: Draw) -> str:
    """Why TOSA does not define what comes of a draw; empty if it does, or if the reference model cannot tell."""
    try:
        run_flatbuffer(tosa, draw.arrays)
    except ReferenceModelError as error:
        return f"{draw.name}: {error}"
    except ValueError:  # it does not accept the graph
        return ""
    return ""


def _incomparable(got: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    """Why these cannot be compared, if they cannot: the reference model's binding returns no 48-bit tensors."""
    for index, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        if ours.shape != theirs.shape or ours.dtype.itemsize != theirs.dtype.itemsize:
            return (
                f"output {index} is {theirs.dtype} {list(theirs.shape)} of the reference model, "
                f"{ours.dtype} {list(ours.shape)} of the payload"
            )
    return None


def _origin(
    tosa: bytes,
    program: Program | None,
    io: PayloadIO,
    pairs: Sequence[_Pair],
    steps: Sequence[Step],
    output: int,
    runs: dict[int, Run],
) -> Origin:
    """Draws on which the output differs come first, those with the most distinct values before the others.

    :param runs: of draws that were looked at for another output, by the draw's identity; receives the others.
    """
    ranked = sorted(
        pairs, key=lambda pair: (output not in {item.output for item in pair.differences}, -_variety(pair.wanted))
    )
    if program is None:
        return unknown_origin("the stream has branches", ranked[0].draw.name)
    written = sum(item.end - item.start for step in steps for item in step.writes)
    block = decode_tosa(tosa).main
    chosen = ranked[: _MOST_RUNS if written <= _LARGE else _FEWER_RUNS]
    for pair in chosen:
        if id(pair.draw) not in runs:
            player = Player(program, io.payload_inputs(pair.draw.arrays))
            runs[id(pair.draw)] = Run(pair.draw.name, player, pair.wanted, _values(tosa, block, pair.draw, pair.wanted))
    return find_origin(block, [runs[id(pair.draw)].of_output(output) for pair in chosen])


def _values(tosa: bytes, block: TosaBlock, draw: Draw, wanted: Sequence[Array]) -> Mapping[str, Array]:
    """All tensors; only the outputs if the reference model does not accept a graph with more of them."""
    try:
        return all_values(tosa, draw.arrays)
    except (ReferenceModelError, ValueError):
        return dict(zip(block.outputs, wanted, strict=True))


def tensors_of_steps(tosa: bytes, payload: VelaPayload, accelerator: str, draw: Draw) -> Mapping[int, str]:
    """The TOSA tensor that each step makes, for the steps that one explains, up to where the stream stops early."""
    configuration = accelerator_named(accelerator)
    program = program_of(payload, decode_commands(payload.commands, configuration), configuration)
    if program is None:
        return {}
    try:
        wanted = run_flatbuffer(tosa, draw.arrays)
    except (ReferenceModelError, ValueError):
        return {}
    block = decode_tosa(tosa).main
    values = _values(tosa, block, draw, wanted)
    player = Player(program, payload_io(tosa, payload).payload_inputs(draw.arrays)).up_to_stop()
    try:
        return explain([Run(draw.name, player, wanted, values)]).shown
    except TooManyPlacements:
        return {}


def _variety(outputs: Sequence[Array]) -> int:
    """Distinct values: results with more of them are harder to meet by chance."""
    return sum(len(np.unique(output)) for output in outputs)
