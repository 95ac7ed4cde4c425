"""A deep graph cut into pieces, each with envelopes of its own.

What rounding allows adds up: behind some ten operators an envelope may hold every code, and judges nothing. Where the
codes of values inside the compiled program are known, the walk goes on with those, so that each piece of the graph is
judged on the very values that its program computed with.

A *cut* is a quantize node. It is none where upstream, by design, may pass on another value than the one that is
quantized (``skipped``): then the codes that are seen are not what the next operator computes with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from harness.case.arrays import Array
from harness.case.traits import DEQUANTIZE
from harness.evidence.observation import Domain, Envelope
from harness.evidence.rounding.interval import Interval
from harness.evidence.rounding.skipped import literal_domain, name_of, passed_on
from harness.evidence.rounding.walk import Policy, envelopes

WIDEST = 1 / 64
"""Share of a value's codes from which on its envelope ends a piece (4 of 256)."""


def chosen_cuts(graph: torch.fx.GraphModule, inputs: Iterable[tuple[Array, ...]]) -> list[str]:
    """Names of the quantize nodes at which a graph is cut, in graph order; the values are stand-ins."""
    found: set[str] = set()

    def cut(node: torch.fx.Node, codes: Interval, doubts: tuple[str, ...]) -> torch.Tensor | None:
        qmin, qmax = node.args[3:5]
        width = float((codes.high - codes.low).max()) if codes.low.numel() else 0.0
        if node.name not in found:
            if not (width > (qmax - qmin) * WIDEST or doubts) or not can_be_cut(node):
                return None
            found.add(node.name)
        return torch.nan_to_num(codes.center).clamp(qmin, qmax).round()

    for arrays in inputs:
        envelopes(graph, arrays, "rounding", cut=cut)
    return [node.name for node in graph.graph.nodes if node.name in found]


def can_be_cut(quantize: torch.fx.Node) -> bool:
    """Does every reader of a quantize node compute with the very codes that it gives, inside the program?"""
    readers = list(quantize.users)
    return (
        domain_of(quantize) is not None
        and name_of(quantize.args[0]) != ""  # the program's own input is no piece
        and bool(readers)
        and all(name_of(reader) == DEQUANTIZE and not passed_on(reader) for reader in readers)
        and not any(user.op == "output" for reader in readers for user in reader.users)
    )


def domain_of(quantize: torch.fx.Node) -> Domain | None:
    """The domain of a quantize node of int8 or int16 whose parameters are literals."""
    return literal_domain(quantize) if quantize.args[5] in (torch.int8, torch.int16) else None


def piecewise(
    graph: torch.fx.GraphModule, arrays: tuple[Array, ...], policy: Policy, codes: Mapping[str, Array]
) -> tuple[Envelope, ...]:
    """Envelopes of the outputs, and behind them those of the values at the cuts, as reals.

    :param graph: its last outputs are the values at the cuts.
    :param codes: what the compiled program had there, by quantize node.
    """
    at_cuts: dict[str, Envelope] = {}

    def cut(node: torch.fx.Node, allowed: Interval, doubts: tuple[str, ...]) -> torch.Tensor | None:
        if node.name not in codes:
            return None
        domain = domain_of(node)
        assert domain is not None
        low, high = ((end - domain.zero_point) * domain.scale for end in (allowed.low, allowed.high))
        at_cuts[node.name] = Envelope(low.numpy(), high.numpy(), doubts)
        return torch.from_numpy(codes[node.name]).to(torch.float64)

    found = envelopes(graph, arrays, policy, cut=cut)
    return (*found[: len(found) - len(codes)], *(at_cuts[name] for name in codes))


class Piecewise(torch.fx.Interpreter):  # type: ignore[misc]
    """Evaluates a quantized graph, and goes on with given codes at the cuts.

    :ivar own: what the graph itself gives there, by quantize node.
    """

    def __init__(self, graph: torch.fx.GraphModule, codes: Mapping[str, Array]) -> None:
        super().__init__(graph)
        self.codes = codes
        self.own: dict[str, torch.Tensor] = {}

    def run_node(self, n: torch.fx.Node) -> Any:
        """One node's value; at a cut the given one."""
        value = super().run_node(n)
        if n.name not in self.codes:
            return value
        self.own[n.name] = value
        return torch.from_numpy(self.codes[n.name]).to(value.dtype)


def values_of(codes: torch.Tensor | Array, domain: Domain) -> Array:
    """Codes as float32 reals, as a dequantize node gives them."""
    whole = torch.as_tensor(codes).to(torch.float32)
    reals: Array = ((whole - domain.zero_point) * domain.scale).numpy()
    return reals


def codes_of(values: Array, domain: Domain) -> Array | None:
    """The codes that reals stand for; None if they are no codes of the domain's type."""
    wide = values.astype("float64") / domain.scale + domain.zero_point
    codes: Array = wide.round().astype("int64")
    bits = 8 if domain.qmax < 256 else 16
    fits = bool((abs(wide - codes) < 1.0e-2).all()) and bool((abs(codes) <= 1 << (bits - 1)).all())
    return codes if fits else None
