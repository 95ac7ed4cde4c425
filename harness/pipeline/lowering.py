"""The one compile of a case for its target: float export, PT2E quantization, edge, delegates, .pte.

Everything that later legs and oracles need is kept: the float graph, the quantized graph, the
edge program before memory planning, each delegate's TOSA flatbuffer and payload. Live objects
are in ``Lowered``; what leaves the worker is its ``record``.

Stages, in order: ``build``, ``export``, ``prepare``, ``calibrate``, ``convert``,
``export-quantized``, ``lower`` (edge, partitioning, Arm passes, TOSA) with ``vela`` or ``vgf`` inside, and
``emit`` (to_executorch). The stage that runs is announced before it starts, so that even a
native death has one.

Imports torch and executorch; runs in worker processes only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.artifacts.tosa import decode_tosa
from harness.case.arrays import Array
from harness.case.building import module_of
from harness.case.case import Case
from harness.case.processor_time import processor_seconds
from harness.case.recipe import parse_recipe
from harness.case.sampling import calibration_samples
from harness.case.target import parse_target
from harness.case.traits import ATEN_ARRANGING, DEQUANTIZE, QUANTIZE
from harness.compat.capture import Captured, captured_payloads
from harness.compat.passes import LiveGraph, Watched, watched_passes
from harness.compat.snapshots import NodeState, PassTrace
from harness.compat.stack import convert_pt2e, edge_config, prepare_pt2e, stack_for, to_edge_transform_and_lower
from harness.compat.states import StateReader, operator_name
from harness.compat.warm.stage_cache import NO_CACHE, StageCache
from harness.evidence.observation import DelegateRecord, Domain, Estimate, LoweringRecord, OutputType, ValueType
from harness.evidence.rounding.originals import constants_of, note_originals
from harness.evidence.rounding.skipped import literal_domain
from harness.pipeline.edge_program import cpu_nodes, placeholder_names, value_type
from harness.pipeline.edited_domains import change_domains
from harness.pipeline.state import state_kept

Configure = Callable[[Any], Any]


class StageClock:
    """Names the running stage, adds up seconds by the clock and of processor time, and tells whoever listens."""

    def __init__(self, announce: Callable[[str], None] = lambda stage: None) -> None:
        self.current = "build"
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._announce = announce

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.enter(name)
        started, used = time.perf_counter(), processor_seconds()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
            self.processor[name] = self.processor.get(name, 0.0) + processor_seconds() - used

    def enter(self, name: str) -> None:
        self.current = name
        self._announce(name)


@dataclass(frozen=True)
class EdgeProgram:
    """Edge graph with its signature and lifted tensors, untouched by later stages."""

    graph_module: torch.fx.GraphModule
    signature: Any
    tensors: Mapping[str, Any]


@dataclass(frozen=True)
class Quantized:
    """Live results up to the exported quantized graph (or the float one, without quantization).

    :param reference: the graph that the compiled program must agree with.
    :param domains: quantized values of that graph, by the producing node's name.
    :param states: the exported form of that graph as data.
    """

    model: torch.nn.Module
    reference: torch.fx.GraphModule
    exported: Any
    partitioner: Any
    domains: Mapping[str, Domain]
    states: Mapping[str, NodeState]


@dataclass(frozen=True)
class Lowered:
    """Live results of one lowering, inside the worker.

    :param edge_program: the program with its delegates, before memory planning.
    :param tosa: TOSA flatbuffer of each delegate, by its module name in the edge program.
    :param graphs: copies of each delegate's graph after every pass that changed it, if asked for.
    :param answers: what the TOSA reference model returned, by flatbuffer and the bytes of its inputs: legs share it.
    """

    model: torch.nn.Module
    reference: torch.fx.GraphModule
    edge_program: EdgeProgram
    tosa: Mapping[str, bytes]
    record: LoweringRecord
    graphs: Mapping[str, list[LiveGraph]] = field(default_factory=dict)
    answers: dict[tuple[bytes, ...], list[Array]] = field(default_factory=dict)


def tensors_of(arrays: tuple[Array, ...]) -> tuple[torch.Tensor, ...]:
    """Module inputs as torch tensors (copies: a model may write in place)."""
    return tuple(torch.from_numpy(array.copy()) for array in arrays)


def quantize(
    case: Case,
    clock: StageClock,
    tensors: Mapping[str, Array] | None = None,
    configure: Configure | None = None,
    model: torch.nn.Module | None = None,
    stages: StageCache = NO_CACHE,
) -> Quantized:
    """Export a case's module and quantize it as its recipe says.

    :param configure: receives the quantizer before use (a checked file's own function).
    :param model: the module to use instead of the one built from the case.
    :param stages: where the stages come from that another target's compile of the same graph may have left.
    :raises Exception: whatever upstream raises; ``clock.current`` names the stage.
    """
    target, recipe = parse_target(case.target), parse_recipe(case.recipe)
    with clock.stage("build"):
        model = module_of(case, tensors) if model is None else model
        samples = [tensors_of(sample) for sample in calibration_samples(case, tensors)]
        stack = stack_for(target, recipe)
        if configure is not None and stack.quantizer is not None:
            configure(stack.quantizer)
    with clock.stage("export"), state_kept(model):  # torch 2.13.0 counts a counter up while it exports
        exported = torch.export.export(model, samples[0])
        reference: torch.fx.GraphModule = exported.module(check_guards=False)
    if stack.quantizer is not None:
        with clock.stage("prepare"):
            prepared = prepare_pt2e(reference, stack.quantizer)
            same = stages.same(prepared)
        reference, exported = stages.quantized(
            model, same, lambda: _calibrated(prepared, samples, recipe.edited, clock)
        )
    states = StateReader(exported).states(exported.graph_module.graph)
    return Quantized(model, reference, exported, stack.partitioner, dict(domains_of(reference)), states)


def _calibrated(
    prepared: torch.fx.GraphModule, samples: Sequence[tuple[torch.Tensor, ...]], edited: str, clock: StageClock
) -> tuple[torch.fx.GraphModule, Any]:
    """The quantized graph of a prepared one, and its export."""
    reference = converted(prepared, samples, edited, clock)
    with clock.stage("export-quantized"), state_kept(reference):
        return reference, torch.export.export(reference, samples[0])


def converted(
    prepared: torch.fx.GraphModule, samples: Sequence[tuple[torch.Tensor, ...]], edited: str, clock: StageClock
) -> torch.fx.GraphModule:
    """The quantized graph of a prepared one, which is used up.

    :param edited: the operator whose results get another domain (``harness.pipeline.edited_domains``), or none.
    """
    with clock.stage("calibrate"), state_kept(prepared):
        for sample in samples:
            prepared(*sample)
    with clock.stage("convert"):
        constants = constants_of(prepared)
        reference: torch.fx.GraphModule = convert_pt2e(prepared)
        note_originals(reference, constants)
        if edited:
            change_domains(reference, edited)
    return reference


class LoweringFailed(Exception):
    """Upstream raised while a delegate was lowered; the cause is chained.

    :param unfinished: what the Arm passes had done by then.
    :param refused: the TOSA flatbuffer on which Vela raised; empty if it was not Vela.
    """

    def __init__(self, unfinished: PassTrace | None, refused: bytes = b"") -> None:
        super().__init__("the lowering raised; see the chained exception")
        self.unfinished, self.refused = unfinished, refused


def compile_program(
    quantized: Quantized, clock: StageClock, *, keep_graphs: bool = False, stages: StageCache = NO_CACHE
) -> Lowered:
    """Lower a quantized graph to its target with the installed packages.

    :param keep_graphs: also keep a copy of each delegate's graph after every pass (``Lowered.graphs``).
    :param stages: where the edge program comes from (those that the graph was quantized with).
    :raises LoweringFailed: chained to whatever upstream raised; ``clock.current`` names the stage.
    """
    watched: Watched | None = None
    captured = Captured()
    try:
        with (
            clock.stage("lower"),
            captured_payloads(clock.enter) as captured,
            watched_passes(keep_graphs) as watched,
            stages.edges(quantized.exported),
        ):
            edge = to_edge_transform_and_lower(
                quantized.exported, partitioner=[quantized.partitioner], compile_config=edge_config()
            )
            program = _snapshot(edge.exported_program())
    except (Exception, SystemExit) as error:
        raise LoweringFailed(watched.unfinished if watched else None, captured.under_way) from error
    for stage, seconds in (*captured.seconds.items(), ("snapshots", watched.seconds)):
        clock.seconds[stage] = clock.seconds.get(stage, 0.0) + seconds
        clock.seconds["lower"] -= seconds
    delegates = tuple(_delegates(program, captured, watched))
    with clock.stage("emit"):
        emitted = edge.to_executorch().buffer
    record = LoweringRecord(
        outputs=tuple(_output_types(quantized.exported.graph_module, quantized.reference)),
        domains=quantized.domains,
        delegates=delegates,
        fallback=tuple(operator_name(node.target) for node in cpu_nodes(program.graph_module)),
        program=bytes(emitted),
        reference=quantized.states,
        seconds=dict(clock.seconds),
    )
    tosa = {delegate.name: delegate.tosa for delegate in delegates if delegate.tosa is not None}
    graphs = {item.name: watched.graphs.get(item.tosa, []) for item in delegates if item.tosa is not None}
    return Lowered(quantized.model, quantized.reference, program, tosa, record, graphs)


def domains_of(reference: torch.fx.GraphModule) -> Iterator[tuple[str, Domain]]:
    """Quantized values of a quantized graph by their producer, with their domains."""
    for node in reference.graph.nodes:
        if node.op == "call_function" and operator_name(node.target).startswith(QUANTIZE):
            domain = literal_domain(node)
            if domain is not None:
                yield node.args[0].name, domain


def _snapshot(program: Any) -> EdgeProgram:
    """Copy what memory planning would rewrite in place (the graph; tensors are shared)."""
    graph = torch.fx.Graph()
    output = graph.graph_copy(program.graph_module.graph, {}, return_output_node=True)
    assert output is not None
    graph.output(output[0])
    module = torch.fx.GraphModule(program.graph_module, graph)
    return EdgeProgram(module, program.graph_signature, {**program.constants, **program.state_dict})


def _delegates(program: EdgeProgram, captured: Captured, watched: Watched) -> Iterator[DelegateRecord]:
    for node in program.graph_module.graph.nodes:
        if node.op != "call_function" or "executorch_call_delegate" not in str(node.target):
            continue
        name = node.args[0].target
        module = getattr(program.graph_module, name)
        payload = bytes(module.processed_bytes)
        tosa = payload if module.backend_id == "TOSABackend" else captured.tosa_of_payload.get(payload)
        inside = tuple(
            operator_name(item.target) for item in module.original_module.graph.nodes if item.op == "call_function"
        )
        inputs = tuple(placeholder_names(module.original_module))
        yield DelegateRecord(
            name=name,
            backend=module.backend_id,
            tosa=tosa,
            payload=payload,
            inputs=inputs,
            tosa_inputs=decode_tosa(tosa).main.inputs if tosa is not None else inputs,
            operators=inside,
            arguments=tuple(value_type(argument.meta["val"]) for argument in node.args[1:]),
            results=tuple(_results_taken(node, len(module.original_module.graph.output_node().args[0]))),
            trace=watched.of_tosa.get(tosa) if tosa is not None else None,
            estimate=_estimate(captured.summary_of_payload.get(payload)),
        )


def _estimate(summary: Mapping[str, str] | None) -> Estimate | None:
    """Vela's estimate, from the columns of its summary; None if they are not there."""
    try:
        return (
            None if summary is None else Estimate(round(float(summary["cycles_total"])), float(summary["core_clock"]))
        )
    except (KeyError, ValueError):
        return None


def _results_taken(call: torch.fx.Node, count: int) -> Iterator[ValueType | None]:
    """What the program believes of each result: the ``getitem`` that reads it."""
    taken = {user.args[1]: user.meta["val"] for user in call.users if operator_name(user.target) == "getitem"}
    for index in range(count):
        yield value_type(taken[index]) if index in taken else None


def _output_types(exported: torch.fx.GraphModule, reference: torch.fx.GraphModule) -> Iterator[OutputType]:
    """Shape and dtype from the exported graph (which has values), domain from the quantized one."""
    for typed, node in zip(_results(exported), _results(reference), strict=True):
        value = typed.meta.get("val") if isinstance(typed, torch.fx.Node) else None
        if isinstance(value, torch.Tensor) and isinstance(node, torch.fx.Node):
            yield OutputType(tuple(value.shape), str(value.dtype).removeprefix("torch."), _domain(node))
        else:
            yield OutputType((), type(typed).__name__)


def _results(module: torch.fx.GraphModule) -> list[Any]:
    results = module.graph.output_node().args[0]
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _domain(node: torch.fx.Node) -> Domain | None:
    """Domain of a dequantized value, looked up through operators that only move elements."""
    while node.op == "call_function":
        name = operator_name(node.target)
        if name.startswith(DEQUANTIZE):
            return literal_domain(node)
        source = node.args[0] if node.args else None
        if not isinstance(source, torch.fx.Node) or name.rpartition(".")[0] not in ATEN_ARRANGING:
            return None
        node = source
    return None
