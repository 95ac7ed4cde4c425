"""The bracket of a value mismatch: the last pass after which outputs are right, the first after
which they are wrong.

The program runs with one delegate replaced by its graph after a pass, the others on the TOSA
reference model, on the input that showed the mismatch. *Right* means that the output in question
lies inside its envelope. A graph that cannot be evaluated is neither.

If the graph is wrong before the first pass, the cause is earlier (to_edge or the partitioner);
if it is right after the last, the serializer or what it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from harness.blame.dialect import Unsupported
from harness.blame.interpreter import run_graph
from harness.compat.passes import LiveGraph
from harness.distributions import Array
from harness.edge import from_memory_order, placeholder_names, result_values, run_edge_program
from harness.errors import ArmdiffError
from harness.legs import arrays_of
from harness.legs.tosa_reference import run_delegate
from harness.lowering import Lowered
from harness.observation import Mismatch

BEFORE, AFTER = "before the Arm passes", "serializer"
Judge = Callable[[tuple[Array, ...]], bool]
"""Are the program's outputs on the one input right?"""


@dataclass(frozen=True)
class Bracket:
    """Between which passes a value went wrong.

    :param first_wrong: the first pass after which it is wrong, "serializer", or None if nothing tells.
    :param last_right: the last pass before it after which the graph could be evaluated and was right.
    :param exact: is no pass that changed the graph between the two?
    """

    last_right: str | None = None
    first_wrong: str | None = None
    exact: bool = False


def bracket_values(lowered: Lowered, arrays: tuple[Array, ...], right: Judge) -> Bracket:
    """Bracket one mismatch, delegate by delegate; the first delegate whose graph is right and then
    wrong is the one. If none is, the last right delegate's serializer."""
    outcome = Bracket()
    for record in lowered.record.delegates:
        graphs = lowered.graphs.get(record.name, [])
        passes = record.trace.passes if record.trace is not None else ()
        verdicts = [_verdict(lowered, record.name, graph, passes, arrays, right) for graph in graphs]
        found = _bracket(graphs, verdicts)
        if found.first_wrong is not None and found.first_wrong != BEFORE:
            return found
        outcome = found if outcome.first_wrong is None else outcome
    return outcome


def _verdict(
    lowered: Lowered,
    name: str,
    graph: LiveGraph,
    passes: tuple[str, ...],
    arrays: tuple[Array, ...],
    right: Judge,
) -> bool | None:
    """Right, wrong, or not to be evaluated."""

    def delegate(called: str, module: Any, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        if called != name:
            return run_delegate(lowered, called, module, tensors)
        inputs = dict(zip(placeholder_names(module.original_module), tensors, strict=True))
        results = run_graph(graph, inputs, passes[: graph.index + 1])
        promised = result_values(module.original_module)
        return [_as_promised(result, like) for result, like in zip(results, promised, strict=True)]

    try:
        with torch.no_grad():
            outputs = arrays_of(run_edge_program(lowered.edge_program, arrays, delegate))
        return right(outputs)
    except (Unsupported, ArmdiffError, RuntimeError, ValueError, TypeError, LookupError, AssertionError):
        return None


def _as_promised(result: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A graph's result where the program expects it: its own shape, or memory order as TOSA has it."""
    if tuple(result.shape) == tuple(like.shape):
        return result
    return from_memory_order(np.ascontiguousarray(result.numpy()), like)


def _bracket(graphs: Sequence[LiveGraph], verdicts: Sequence[bool | None]) -> Bracket:
    if not any(verdict is not None for verdict in verdicts):
        return Bracket()
    last_right: int | None = None
    for index, verdict in enumerate(verdicts):
        if verdict is True:
            last_right = index
    if last_right is None:
        wrong = next(index for index, verdict in enumerate(verdicts) if verdict is False)
        return Bracket(None, BEFORE if wrong == 0 else graphs[wrong].name, wrong == 0)
    wrong_after = next((index for index in range(last_right + 1, len(verdicts)) if verdicts[index] is False), None)
    if wrong_after is None:
        return Bracket(graphs[last_right].name, AFTER, last_right == len(graphs) - 1)
    return Bracket(graphs[last_right].name, graphs[wrong_after].name, wrong_after == last_right + 1)


def blamed(mismatch: Mismatch, bracket: Bracket) -> Mismatch:
    """The mismatch with its bracket, in words and as data."""
    if bracket.first_wrong is None:
        return mismatch
    if bracket.exact:
        text, pass_name = f"first wrong after {bracket.first_wrong}", bracket.first_wrong
    else:
        text = (
            f"right after {bracket.last_right or 'nothing that could be evaluated'}, wrong after {bracket.first_wrong}"
        )
        pass_name = f"{bracket.last_right or 'start'}..{bracket.first_wrong}"
    return replace(
        mismatch,
        message=f"{mismatch.message}; {text}",
        pass_name=pass_name,
        last_right=bracket.last_right,
    )
