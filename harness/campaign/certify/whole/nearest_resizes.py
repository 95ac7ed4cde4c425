"""``nearest-resize-doubles-by-size``: every nearest upsample of a short axis by a small factor, or to a size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from harness.campaign.certify.whole import Domain, Judge

MOST_SIZE, MOST_FACTOR, MOST_PARTS = 24, 4, 8
BESIDE = (1, 127)
"""Widths of the other axis, which stays: PyTorch has another kernel where height and width come to more than 128."""


class Point(NamedTuple):
    """An axis before and after, and the factor; None where the size was given."""

    channels_last: bool
    beside: int
    size: int
    output: int
    factor: float | None


def points() -> Iterator[Point]:
    for channels_last in (False, True):
        for beside in BESIDE:
            for size, output, factor in _axes():
                yield Point(channels_last, beside, size, output, factor)


def _axes() -> Iterator[tuple[int, int, float | None]]:
    parts = range(1, MOST_PARTS + 1)
    factors = sorted({Fraction(number, part) for part in parts for number in range(1, MOST_FACTOR * part + 1)})
    for size in range(1, MOST_SIZE + 1):
        for factor in factors:
            output = int(size * float(factor))
            if output and _is_exact(output, 1 / factor, np.float32(1 / float(factor))):
                yield size, output, float(factor)
        for output in range(1, MOST_FACTOR * size + 1):
            if _is_exact(output, Fraction(size, output), np.float32(size) / np.float32(output)):
                yield size, output, None


def _is_exact(output: int, step: Fraction, rounded: np.float32) -> bool:
    """Does ATen, which goes by a step in float32, come to the elements that the step itself leads to?"""
    return all(int(np.float32(place) * rounded) == place * step // 1 for place in range(output))


class _Enough(Exception):
    """The pass has written down what it chose."""


def judge() -> Judge:
    """Does TOSA's RESIZE with the pass's parameters take the elements that ATen takes?"""
    torch: Any = import_module("torch")
    module: Any = import_module("executorch.backends.arm._passes.rewrite_upsample")
    nearest = module.exir_ops.edge.aten.upsample_nearest2d.vec

    def judged(point: Point) -> bool:
        layout = torch.channels_last if point.channels_last else torch.contiguous_format
        places = torch.arange(float(point.size)).reshape(1, 1, point.size, 1)
        places = places.expand(1, 4, point.size, point.beside).contiguous(memory_format=layout)
        size = None if point.factor else (point.output, point.beside)
        factors = (point.factor, 1.0) if point.factor else None
        wanted = torch.nn.functional.interpolate(places, size, factors, "nearest")
        node = SimpleNamespace(op="call_function", target=nearest, meta={"val": wanted})
        node.args = (SimpleNamespace(meta={"val": places}), size, factors)
        (up, down, *_), (offset, _), (border, _) = _chosen(module, node)
        elements: list[float] = wanted[0, 0, :, 0].tolist()
        return _taken(point.size, up, down, offset, border) == elements

    return judged


def _chosen(module: Any, node: Any) -> list[list[int]]:
    """Scale, offset and border of height and width, as the pass makes constants of them."""
    made: list[list[int]] = []

    def note(graph: Any, op_target: Any, args: Any, **words: Any) -> None:
        made.append(args[0])
        if len(made) == 3:
            raise _Enough

    graph = SimpleNamespace(nodes=[node], inserting_before=lambda _: nullcontext())
    installed, module.create_shape_node = module.create_shape_node, note
    try:
        module.RewriteUpsamplePass.call(module.RewriteUpsamplePass(), SimpleNamespace(graph=graph))
    except _Enough:
        pass
    finally:
        module.create_shape_node = installed
    return made


def _taken(size: int, up: int, down: int, offset: int, border: int) -> list[int]:
    """The elements that RESIZE takes of an axis, by TOSA's specification; empty where it has no whole size."""
    last, rest = divmod((size - 1) * up - offset + border, down)
    taken = []
    for place in range(last + 1 if not rest else 0):
        whole, part = divmod(place * down + offset, up)
        taken.append(min(max(whole + (2 * part >= up), 0), size - 1))
    return taken


DOMAIN = Domain(
    name="nearest-resize-doubles-by-size",
    says=(
        f"every nearest upsample of an axis of up to {MOST_SIZE} elements by a factor of up to {MOST_FACTOR} in parts "
        f"down to 1/{MOST_PARTS}, or to any size of up to {MOST_FACTOR} times as many, but for those whose step ATen "
        "rounds to another element; of small and of wide planes, channels last in memory or not; the elements that "
        "TOSA's RESIZE takes are compared with ATen's"
    ),
    points=points,
    judge=judge,
)
