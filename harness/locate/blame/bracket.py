"""The bracket of a value mismatch: the last pass after which outputs are right, the first after
which they are wrong.

The program runs with one delegate replaced by its graph after a pass, the others by their graphs
before the passes, on the input that showed the mismatch. Last comes the delegate's flatbuffer on
the TOSA reference model: what the program really does. A graph that cannot be evaluated is
neither right nor wrong.

A wrong graph is evidence only if its outputs are *alike* the flatbuffer's, as are those of all
wrong graphs after it. One that is wrong in another way may be one that the interpreter reads
wrongly: then the bracket reaches to where the likeness begins, and says that it is a bracket.

A right graph may be alike, too: then the pass behind it moved values by no more than rounding does, and may only have
made visible what an earlier one did (a zero point that is off by one is rounded away until two RESCALEs become one).
If what the lowering shows without a run speaks against an earlier pass, the bracket reaches back to the graph
before that one.

If the graphs before the passes are wrong, the cause is earlier (to_edge or the partitioner); if
the last graph is right, it is the serializer or what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness.case.arrays import Array
from harness.case.errors import ArmdiffError
from harness.compat.passes import LiveGraph
from harness.evidence.observation import Mismatch
from harness.locate.blame.dialect import Unsupported
from harness.locate.blame.interpreter import run_graph
from harness.pipeline.edge_program import from_memory_order, placeholder_names, result_values, run_edge_program
from harness.pipeline.legs import arrays_of
from harness.pipeline.legs.tosa_reference import run_delegate
from harness.pipeline.lowering import Lowered

BEFORE, AFTER = "before the Arm passes", "serializer"
_START = "start"
Outputs = tuple[Array, ...]


@dataclass(frozen=True)
class Judge:
    """What is asked of the program's outputs on the one input.

    :param right: are they where rounding allows?
    :param alike: may two outputs, right or not, be roundings of the same values?
    """

    right: Callable[[Outputs], bool]
    alike: Callable[[Outputs, Outputs], bool]


@dataclass(frozen=True)
class Stage:
    """A delegate at one place of its lowering.

    :param name: the pass that left the graph, "start", or "serializer" for the flatbuffer.
    :param right: None if the graph cannot be evaluated.
    :param alike: are the outputs alike the flatbuffer's?
    """

    name: str
    right: bool | None
    alike: bool = True


@dataclass(frozen=True)
class Bracket:
    """Between which passes a value went wrong.

    :param first_wrong: the first pass after which it is surely wrong, "serializer", or None if nothing tells.
    :param last_right: the last pass before it after which the graph could be evaluated and was right.
    :param exact: is no pass that changed the graph between the two?
    """

    last_right: str | None = None
    first_wrong: str | None = None
    exact: bool = False


def bracket_values(lowered: Lowered, arrays: Outputs, judge: Judge, suspects: Collection[str] = ()) -> Bracket:
    """Bracket one mismatch, delegate by delegate; the first delegate whose passes alone make it wrong is the one.

    Nothing tells where the TOSA program as a whole is right: then the fault lies behind it.

    :param suspects: passes that are blamed without a run.
    """
    program = _outputs(lowered, arrays, {})
    if program is None or judge.right(program):
        return Bracket()
    names = [record.name for record in lowered.record.delegates]
    starts: dict[str, LiveGraph] = {}
    outputs = program
    for name in names:
        graphs = lowered.graphs.get(name, [])
        tried = _outputs(lowered, arrays, {**starts, name: graphs[0]}) if graphs else None
        if tried is not None:
            starts, outputs = {**starts, name: graphs[0]}, tried
    if len(starts) == len(names) and not judge.right(outputs) and judge.alike(outputs, program):
        return Bracket(None, BEFORE, True)
    if not judge.right(outputs):
        starts = {}
    for name in names:
        others = {key: graph for key, graph in starts.items() if key != name}
        final = _outputs(lowered, arrays, others) if others else program
        if final is not None and not judge.right(final):
            found = bracket_of(stages(lowered, name, arrays, judge, others, final), suspects)
            if found.first_wrong is not None:
                return found
    return Bracket()


def stages(
    lowered: Lowered, name: str, arrays: Outputs, judge: Judge, others: Mapping[str, LiveGraph], final: Outputs
) -> list[Stage]:
    """One delegate after every pass and, last, as flatbuffer.

    :param others: graphs that stand for other delegates; those without one run as flatbuffers.
    :param final: the program's outputs with this delegate as flatbuffer.
    """
    found = []
    for graph in lowered.graphs.get(name, []):
        outputs = _outputs(lowered, arrays, {**others, name: graph})
        if outputs is None:
            found.append(Stage(graph.name, None))
        else:
            found.append(Stage(graph.name, judge.right(outputs), judge.alike(outputs, final)))
    return [*found, Stage(AFTER, judge.right(final))]


def _outputs(lowered: Lowered, arrays: Outputs, graphs: Mapping[str, LiveGraph]) -> Outputs | None:
    """Outputs of the program with some delegates replaced by graphs; None if they cannot be evaluated."""
    passes = {record.name: record.trace.passes if record.trace else () for record in lowered.record.delegates}

    def delegate(called: str, module: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        graph = graphs.get(called)
        if graph is None:
            return run_delegate(lowered, called, module, tensors)
        inputs = dict(zip(placeholder_names(module.original_module), tensors, strict=True))
        results = run_graph(graph, inputs, passes[called][: graph.index + 1])
        promised = result_values(module.original_module)
        return [_as_promised(result, like) for result, like in zip(results, promised, strict=True)]

    try:
        with torch.no_grad():
            return arrays_of(run_edge_program(lowered.edge_program, arrays, delegate))
    except (Unsupported, ArmdiffError, RuntimeError, ValueError, TypeError, LookupError, AssertionError):
        return None


def _as_promised(result: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A graph's result where the program expects it: its own shape, or memory order as TOSA has it."""
    if tuple(result.shape) == tuple(like.shape):
        return result
    return from_memory_order(np.ascontiguousarray(result.numpy()), like)


def bracket_of(found: Sequence[Stage], suspects: Collection[str] = ()) -> Bracket:
    """The bracket of one delegate's stages; the last of them is its flatbuffer.

    It ends at the first of the stages that are wrong alike to the end, and begins at the last
    right stage before anything that is wrong in that way; if that one is alike as well, before the first suspect.
    """
    if found[-1].right is not False:
        return Bracket()
    end = len(found) - 1
    for index in range(len(found) - 1, -1, -1):
        stage = found[index]
        if stage.right or (stage.right is False and not stage.alike):
            break
        end = index if stage.right is False else end
    alike = next(index for index, stage in enumerate(found) if stage.right is False and stage.alike)
    begin = max((index for index in range(alike) if found[index].right), default=None)
    if begin is None:  # wrong already at the start: what is wrong is not in this delegate
        return Bracket(None, found[end].name, False) if end > 0 else Bracket()
    suspect = next((index for index in range(begin + 1) if found[index].name in suspects), None)
    if found[begin].alike and suspect is not None:
        before = next((stage.name for stage in reversed(found[:suspect]) if stage.right), None)
        return Bracket(before, found[end].name, False)
    return Bracket(found[begin].name, found[end].name, end == begin + 1)


def blamed(mismatch: Mismatch, bracket: Bracket) -> Mismatch:
    """The mismatch with its bracket, in words and as data."""
    if bracket.first_wrong is None:
        return mismatch
    last_right = bracket.last_right
    if bracket.exact:
        text, pass_name = f"first wrong after {bracket.first_wrong}", bracket.first_wrong
    else:
        text = f"right after {last_right or 'nothing that could be evaluated'}, wrong after {bracket.first_wrong}"
        last_right = last_right or _START  # what marks a bracket, for whoever buckets it
        pass_name = f"{last_right}..{bracket.first_wrong}"
    return replace(mismatch, message=f"{mismatch.message}; {text}", pass_name=pass_name, last_right=last_right)
