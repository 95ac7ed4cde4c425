"""``qparams``: what PT2E decided arrives in the binary.

Three looks at one delegate:

* the *start graph*: scales finite and positive, zero points in range, int16 symmetric, operators
  that only move elements with one domain on both sides. What is wrong here is the quantizer's.
* the *metadata* after each pass: ``input_qparams`` and ``output_qparams`` say what the Q/DQ nodes
  said. What is wrong here is the pass's after which it shows first. If a pass raised, what its
  kernel lacked is reported as well.
* the *flatbuffer*: scale and zero point of every tensor by dimensional analysis
  (``harness.evidence.inspection.units``), TABLE constants against the function in float64, round modes,
  and the range of codes that a clamp, or a quantize node's qmin and qmax, leaves.

One mismatch a delegate and kind: the first in graph order, with the count of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.case.errors import BadInput
from harness.case.place import Fact
from harness.case.recipe import parse_recipe
from harness.compat.snapshots import PassTrace
from harness.evidence.inspection.analysis import Analysis, analyse
from harness.evidence.inspection.blame import parameters_blame
from harness.evidence.inspection.lookup import table_problems
from harness.evidence.inspection.metadata import Fault, metadata_faults, start_faults, unfinished_faults
from harness.evidence.inspection.ranges import BEFORE_TABLE, NOT_ENFORCED, range_problems
from harness.evidence.inspection.surroundings import tosa_place, trace_place
from harness.evidence.inspection.units import Problem
from harness.evidence.observation import Mismatch, Observation, Oracle
from harness.evidence.references import first_of_each

NAME = "qparams"


def judge(observation: Observation) -> list[Mismatch]:
    """Mismatches of every delegate, and of the one whose lowering raised."""
    record = observation.lowering
    found: list[Mismatch] = []
    if record.unfinished is not None:
        trace = record.unfinished
        faults = (*start_faults(trace), *metadata_faults(trace), *unfinished_faults(trace))
        found += _merged(_of_fault(fault, "the delegate that was being lowered", trace) for fault in faults)
    for delegate in record.delegates:
        if delegate.trace is not None:
            faults = (*start_faults(delegate.trace), *metadata_faults(delegate.trace))
            found += _merged(
                _of_fault(fault, delegate.name, delegate.trace) for fault in _not_edited(observation, faults)
            )
        try:
            analysis = analyse(delegate)
        except BadInput:
            continue  # ``buffers`` reports damaged artifacts
        if analysis is not None:
            found += _merged(_of_problem(problem, analysis) for problem in _problems(analysis))
    return found


def _not_edited(observation: Observation, faults: Iterable[Fault]) -> Iterator[Fault]:
    """Faults without those of an operator whose domain was changed by hand: no metadata can be right for it."""
    edited = parse_recipe(observation.case.recipe).edited
    return (fault for fault in faults if not edited or fault.operator.split(".")[1:2] != [edited])


def _problems(analysis: Analysis) -> Iterator[Problem]:
    yield from analysis.problems
    yield from table_problems(analysis)
    yield from range_problems(analysis)


def _of_fault(fault: Fault, where: str, trace: PassTrace) -> Mismatch:
    return Mismatch(
        oracle=NAME,
        kind=fault.kind,
        stage="lower" if fault.pass_name else "convert",
        pass_name=fault.pass_name or "quantizer",
        message=f"{where}: {fault.message}",
        measured={"node": fault.node},
        signature=fault.operator,
        place=trace_place(trace.start, fault.node),
        node=trace.start.call(fault.node),
    )


def _of_problem(problem: Problem, analysis: Analysis) -> Mismatch:
    """No pass carries a quantize node's qmin into TOSA, so none is blamed for that, and no operator named."""
    unbounded = problem.kind in (NOT_ENFORCED, BEFORE_TABLE)
    origin = analysis.origins.of[problem.operator.index]
    start = analysis.trace.start.nodes.get(origin or "")
    stands_for = f", for {origin} ({start.target})" if start is not None else ""
    return Mismatch(
        oracle=NAME,
        kind=problem.kind,
        stage="lower",
        pass_name=None if unbounded else parameters_blame(problem, analysis),
        message=f"{analysis.delegate.name}: {problem.message} (operator {problem.operator.index} "
        f"{problem.operator.op}{stands_for})",
        measured=problem.measured,
        place=tosa_place(analysis.block, problem.operator.outputs, _numbers(problem.measured)),
        node=analysis.trace.start.call(str(problem.measured.get("node", origin or ""))),
        signature="" if unbounded else start.target if start is not None else problem.operator.op,
    )


def _numbers(measured: Mapping[str, float | int | str | bool]) -> dict[str, Fact]:
    return {name: int(value) if isinstance(value, bool) else value for name, value in measured.items()}


def _merged(found: Iterable[Mismatch]) -> list[Mismatch]:
    return first_of_each(found, lambda mismatch: (mismatch.kind, mismatch.pass_name))


ORACLE = Oracle(
    NAME,
    judge,
    coarse=True,
    lowered=True,
    rank=5,
    expected="The scales and zero points that PT2E chose are those of the compiled graph.",
    wrong="gets other scales, zero points or bounds than the quantizer chose",
)
