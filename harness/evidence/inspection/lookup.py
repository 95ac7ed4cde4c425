"""TABLE constants against the function that they stand for, evaluated in float64.

An int8 TABLE has one entry a code (TOSA 1.0, TABLE): the code of f(value of the input code). An
int16 TABLE has 513 entries, entry k standing for input code (k - 256) * 128, the last for 32768;
its result has 7 fractional bits and entries may be shifted right to fit 16 bits, which the RESCALE
behind it undoes (executorch InsertTableOpsPass); neighbours differ by an int16 at most. An entry may be either
neighbour of a tie, and float32 evaluation may move it by a few epsilons of the entry and of the argument
(gelu(x) = x / 2 (1 + erf(x / sqrt 2)) cancels below zero: at -3.55 float32 is off by 1,100 epsilons of the result, 0.2
of x); nothing else is allowed.

Only groups that are one TABLE, for one start operator with one tensor argument, are judged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from harness.artifacts.tosa import TosaOperator
from harness.case.arrays import Array
from harness.case.traits import TOSA_ARRANGING
from harness.compat.snapshots import NodeState, Qparams, Ref, base
from harness.evidence.inspection.analysis import Analysis
from harness.evidence.inspection.decisions import decided, operands
from harness.evidence.inspection.folding import Folded, codes_within, overload
from harness.evidence.inspection.units import Problem

EVALUATION = 64 * 2.0**-24
"""Relative float32 error of a transcendental function and its usual decompositions."""
CANCELLATION = 2 * 2.0**-24
"""Error of a result that is what is left of two numbers of the argument's size, relative to the argument."""
ARGUMENT = 2.0**-23
"""Relative error of an argument: the scale is a float32, and so is its product with a code. It decides on which side
of a jump (ceil, floor, round, sign) an argument lies: code -127 at scale 1/127 is -1 in float32, more in float64."""

PERIODIC = ("sin", "cos", "tan")
UNKNOWN_PHASE = 2.0**-8
"""Error of an argument, in radians, beyond which nothing is said of these: at 3,000,000 float32 has steps of 0.25."""


def table_problems(analysis: Analysis) -> Iterator[Problem]:
    """Wrong entries, one problem a TABLE."""
    for operator in analysis.block.operators:
        if operator.op != "TABLE":
            continue
        origin = analysis.origins.of[operator.index]
        if origin is None or sum(item.op == "TABLE" for item in analysis.origins.group(origin)) != 1:
            continue
        yield from _judged(analysis, operator, analysis.trace.start.nodes[origin])


def _judged(analysis: Analysis, operator: TosaOperator, start: NodeState) -> Iterator[Problem]:
    graph = analysis.trace.start
    inside = [item.qparams for item in operands(start, graph)]
    outside = decided(start.name, graph)
    entries = analysis.block.tensors[operator.inputs[1]].values().astype(np.int64)
    if len(inside) != 1 or len(outside) != 1 or outside[0].dtype not in ("int8", "int16"):
        return
    if inside[0].dtype == "int8" and entries.size == 256:
        codes = np.arange(-128, 128)
    elif inside[0].dtype == "int16" and entries.size == 513:
        codes = (np.arange(513) - 256) * 128
    else:
        return
    group = {item.op for item in analysis.origins.group(start.name)}
    if not group <= {"TABLE", "RESCALE", *TOSA_ARRANGING}:
        return
    arguments = (codes - inside[0].zero_points[0]) * inside[0].scales[0]
    allowed = _allowed(start, arguments, outside[0])
    if allowed is None:
        return
    low, high = allowed
    shift = _shift(low) if entries.size == 513 else 0
    low, high = low >> shift, high >> shift
    if entries.size == 513:
        low, high = with_steps_that_tosa_has(low, high)
    reached = (codes >= inside[0].qmin) & (codes <= inside[0].qmax) if entries.size == 256 else codes >= -32768
    wrong = np.flatnonzero(reached & ((entries < low) | (entries > high)))
    if wrong.size:
        at = int(wrong[np.argmax(np.abs(entries[wrong] - low[wrong]))])
        wanted = f"{low[at]}" if low[at] == high[at] else f"{low[at]} or {high[at]}"
        yield Problem(
            "table entry wrong",
            operator,
            operator.outputs[0],
            f"{operator.inputs[1]}: {wrong.size} of {entries.size} entries are not {start.target} in float64; entry "
            f"{at} (input code {codes[at]}) is {entries[at]}, expected {wanted}",
            {"entries": int(wrong.size), "worst": int(abs(entries[at] - low[at]))},
        )


def with_steps_that_tosa_has(low: Array, high: Array) -> tuple[Array, Array]:
    """What int16 entries may be: those beside a step wider than an int16, which no TABLE has, all that is between."""
    widest = np.maximum(high[1:], high[:-1]) - np.minimum(low[1:], low[:-1])
    low, high = low.copy(), high.copy()
    for place in np.flatnonzero(widest > np.iinfo(np.int16).max):
        low[place : place + 2] = low[place : place + 2].min()
        high[place : place + 2] = high[place : place + 2].max()
    return low, high


def _evaluated(start: NodeState, values: Array) -> Array | None:
    """The start operator on float64 values; None if it takes more than one tensor or raises."""
    import torch

    if len(start.refs) != 1 or not isinstance(start.args[0], Ref):
        return None
    literals = [list(item) if isinstance(item, tuple) else item for item in start.args[1:]]
    try:
        result = overload(start)(torch.from_numpy(values.astype(np.float64)), *literals, **start.kwargs)
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    evaluated: Array = result.numpy()
    return evaluated if evaluated.shape == values.shape else None


def _allowed(start: NodeState, arguments: Array, qparams: Qparams) -> tuple[Array, Array] | None:
    """Lowest and highest code of each entry, over what float32 may make of its argument; None: cannot be evaluated."""
    results = [_evaluated(start, arguments * (1 + error)) for error in (0.0, -ARGUMENT, ARGUMENT)]
    codes = [_codes(result, arguments, qparams) for result in results if result is not None]
    if not codes:
        return None
    low, high = np.minimum.reduce([item.low for item in codes]), np.maximum.reduce([item.high for item in codes])
    if base(start) in PERIODIC:
        anything = np.abs(arguments) * ARGUMENT > UNKNOWN_PHASE
        low, high = np.where(anything, qparams.qmin, low), np.where(anything, qparams.qmax, high)
    return low, high


def _codes(exact: Array, arguments: Array, qparams: Qparams) -> Folded:
    """Lowest and highest code of each result."""
    steps = exact / qparams.scales[0]
    slack = np.abs(steps) * EVALUATION + np.abs(arguments / qparams.scales[0]) * CANCELLATION
    return codes_within(steps, slack, qparams.zero_points[0], qparams)


def _shift(codes: Array) -> int:
    """Bits by which the codes are shifted right to fit 16-bit entries: the fewest, as the pass chooses."""
    largest = int(np.max(np.abs(codes)))
    return largest.bit_length() + 1 - 16 if largest > 32767 else 0
