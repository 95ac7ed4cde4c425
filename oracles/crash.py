"""``crash``: an exception at any stage, a native death, or an invalid answer of an engine.

The signature (``harness.evidence.signatures``) is what stays equal while a case shrinks. What fails in plain eager is
not upstream's: the runner rejects such a case before any oracle sees it.
"""

from __future__ import annotations

from harness.artifacts.tosa import decode_tosa
from harness.case.case import Graph
from harness.case.place import Place
from harness.evidence.inspection.surroundings import CONSTANTS, case_place
from harness.evidence.observation import CRASH, Failure, LoweringRecord, Mismatch, Observation, Oracle, headline
from harness.evidence.references import EAGER, RUNTIME
from harness.evidence.signatures import normalized, signature
from harness.evidence.undefined import not_a_number, written_twice
from harness.triage.unjudged.execution import of_failures

UNPREDICTABLE = "TOSA_UNPREDICTABLE"


def _call(failure: Failure, record: LoweringRecord) -> str:
    """The case's node that upstream was working on."""
    name = (failure.node or "").split(" ", 1)[0]  # its operator follows in brackets
    graphs = [record.reference]
    if record.unfinished is not None:
        graphs = [record.unfinished.last.nodes, record.unfinished.start.nodes, *graphs]
    return next((graph[name].call for graph in graphs if name in graph and graph[name].call), "")


def _mismatch(failure: Failure, legs: tuple[str, str] | None, observation: Observation) -> Mismatch:
    record, graph = observation.lowering, observation.case.graph
    where = f" in {failure.pass_name}" if failure.pass_name else ""
    where += f" at {failure.node}" if failure.node else ""
    return Mismatch(
        oracle="crash",
        kind="exception",
        stage=failure.stage,
        pass_name=failure.pass_name,
        legs=legs,
        message=f"{failure.type}{where} during {failure.stage}: {headline(failure.message)[:300]}",
        measured={"type": failure.type, "frame": failure.frame or "", "node": failure.node or ""},
        signature=signature(failure),
        node=_call(failure, record),
        place=_refused_kernel(failure, graph) or _refused_graph(record, graph),
    )


def _refused_graph(record: LoweringRecord, graph: Graph) -> Place | None:
    """The case's graph, and of the TOSA graph on which Vela raised, how many outputs are inputs of it (``passed_on``),
    and how many are constants (``constant``).
    """
    if not record.refused:
        return None
    block = decode_tosa(record.refused).main
    makers = [block.producers[name].op for name in block.outputs if name in block.producers]
    passed_on = sum(name in block.inputs for name in block.outputs)
    return case_place(graph, {"passed_on": passed_on, "constant": sum(op in CONSTANTS for op in makers)})


def _refused_kernel(failure: Failure, graph: Graph) -> Place | None:
    """The case's graph, and where ExecuTorch's runtime refused it: the kernel, and its reason in one word."""
    kernel, named, why = headline(failure.message).partition(": ")
    if failure.stage != f"leg:{RUNTIME}" or not named or "::" not in kernel:
        return None
    return case_place(graph, {"kernel": kernel, "why": normalized(why).replace(" ", "-")})


def judge(observation: Observation) -> list[Mismatch]:
    """One mismatch a failure; none of what PyTorch leaves undefined and TOSA calls unpredictable."""
    if observation.failure is not None:
        return [_mismatch(observation.failure, None, observation)]
    failed = {name: leg.failure for name, leg in observation.legs.items() if leg.failure}
    if any(UNPREDICTABLE in item.message for item in failed.values()):
        floats = observation.legs[EAGER].outputs if EAGER in observation.legs else ()
        undefined = written_twice(observation.case.graph, observation.inputs) or not_a_number(floats)
        failed = {name: item for name, item in failed.items() if not (undefined and UNPREDICTABLE in item.message)}
    return [_mismatch(failure, (name, name), observation) for name, failure in failed.items()]


ORACLE = Oracle(
    CRASH,
    judge,
    lambda observation, _: of_failures(observation),
    lowered=True,
    rank=10,
    form="crash",
    expected="The module lowers and runs; or the partitioner leaves the pattern to the CPU, with a reason.",
)
