"""A quantized graph lowered with values inside as outputs, and judged piece by piece, for the ``inside`` probe.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import torch

from harness.case.arrays import Array
from harness.evidence.observation import Domain, OutputType
from harness.evidence.references import TOSA
from harness.evidence.rounding.cuts import Piecewise, codes_of, domain_of, piecewise, values_of
from harness.evidence.rounding.skipped import name_of
from harness.evidence.rounding.walk import Policy
from harness.pipeline.legs import arrays_of, legs
from harness.pipeline.lowering import StageClock, tensors_of
from harness.pipeline.probes import Scene
from harness.pipeline.probes.graphs import same_bits
from harness.pipeline.probes.results import Pieces, Skipped
from harness.pipeline.probes.twins import inputs_of_twins, lower

Codes = Mapping[str, Array]


def in_pieces(scene: Scene, cuts: Sequence[str], clock: StageClock) -> Pieces | Skipped:
    """What the program computes at the cuts, and what each piece may.

    :param cuts: quantize nodes of the quantized graph.
    :raises Exception: whatever upstream raises.
    """
    chosen = inputs_of_twins(scene)
    items = [scene.inputs[index] for index in chosen]
    types = scene.lowered.record.outputs
    twin = with_outputs(scene.lowered.reference, cuts)
    quantizes = [node for node in twin.graph.nodes if node.name in cuts]
    domains = {node.name: domain for node in quantizes if (domain := domain_of(node)) is not None}
    lowered = lower(scene, twin, items[0], clock)
    with clock.stage("run"):
        compiled = legs()[TOSA].run(lowered, items)
    for index, found in zip(chosen, compiled, strict=True):
        if not all(map(same_bits, scene.legs[TOSA].outputs[index], found[: len(types)])):
            return Skipped("with values inside as outputs the program returns other values")
    codes = [_codes(found[len(types) :], domains) for found in compiled]
    known = [item for item in codes if item is not None]
    if len(known) < len(codes):
        return Skipped("a value inside is no code of its domain")
    policy: Policy = "saturation" if scene.saturation else "rounding"  # ``qparams`` tells where a qmin is lost
    inside = zip(domains.values(), compiled[0][len(types) :], strict=True)
    return Pieces(
        cuts=tuple((node.args[0].name, name_of(node.args[0])) for node in quantizes),
        inputs=chosen,
        types=types + tuple(OutputType(values.shape, str(values.dtype), domain) for domain, values in inside),
        reference=tuple(_reference(twin, item.arrays, held, domains) for item, held in zip(items, known, strict=True)),
        compiled=compiled,
        rounding=tuple(piecewise(twin, item.arrays, policy, held) for item, held in zip(items, known, strict=True)),
    )


def with_outputs(graph: torch.fx.GraphModule, cuts: Sequence[str]) -> torch.fx.GraphModule:
    """A copy that returns the values at the cuts behind its own outputs, a flat tuple.

    Each reader of a quantize node has a dequantize node of its own in what PT2E makes; so has an output.
    """
    twin = copy.deepcopy(graph)
    nodes = {node.name: node for node in twin.graph.nodes}
    last = twin.graph.output_node()
    own = last.args[0] if isinstance(last.args[0], (tuple, list)) else (last.args[0],)
    with twin.graph.inserting_before(last):
        inside = [_another(next(iter(nodes[name].users))) for name in cuts]
    last.args = ((*own, *inside),)
    twin.graph.set_codegen(torch.fx.graph.CodeGen())
    twin.recompile()
    return twin


def _another(dequantize: torch.fx.Node) -> torch.fx.Node:
    """A second dequantize node of the same value."""
    node = dequantize.graph.call_function(dequantize.target, dequantize.args, dict(dequantize.kwargs))
    node.meta = dict(dequantize.meta)
    return node


def _codes(values: Sequence[Array], domains: Mapping[str, Domain]) -> Codes | None:
    """What the program had at each cut; None if a value is no code."""
    codes = {name: codes_of(item, domain) for (name, domain), item in zip(domains.items(), values, strict=True)}
    held = {name: item for name, item in codes.items() if item is not None}
    return held if len(held) == len(codes) else None


def _reference(
    graph: torch.fx.GraphModule, arrays: tuple[Array, ...], codes: Codes, domains: Mapping[str, Domain]
) -> tuple[Array, ...]:
    """Quantized eager, every piece on the program's own values."""
    pieces = Piecewise(graph, codes)
    with torch.no_grad():
        outputs = arrays_of(pieces.run(*tensors_of(arrays)))
    inside = tuple(values_of(pieces.own[name], domain) for name, domain in domains.items())
    return (*outputs[: len(outputs) - len(inside)], *inside)
