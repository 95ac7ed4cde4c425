"""What motifs are made of: draws from a few choices, inputs of drawn sizes, convolutions, joins.

Each takes the ``GraphPool`` that it adds to and returns the name of the new value (``pick``: one
of its options).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from generators.pool import GraphPool
from generators.sizes import GROWING, within


def pick(pool: GraphPool, *options: Any) -> Any:
    """One of the options, the first ones being the simpler."""
    return pool.draw(st.sampled_from(options))


def image(pool: GraphPool, *, channels: tuple[int, ...] = (2, 4, 3, 8, 1), most: int = 9) -> str:
    """A new input (batch, channels, height, width) with sides of 4 (3 now and then) to ``most``."""
    sides = within((4, 5, 6, 8, 3, 7, 9), most)
    batch, depth, height = pick(pool, 1, 1, 1, 2), pick(pool, *channels), pick(pool, *sides)
    return pool.input((batch, depth, height, pick(pool, *within(sides, GROWING // (batch * depth * height)))))


def conv(pool: GraphPool, source: str, outer: int, **changes: Any) -> str:
    """A convolution; 3x3 that keeps the size unless ``changes`` say otherwise."""
    window = {"kernel": [3, 3], "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1]}
    return pool.add("conv2d", source, **({"out_channels": outer, **window, "groups": 1, "bias": True} | changes))


def pointwise(pool: GraphPool, source: str, outer: int) -> str:
    return conv(pool, source, outer, kernel=[1, 1], padding=[0, 0])


def rectify(pool: GraphPool, source: str) -> str:
    """An activation whose lower end is zero, most often relu."""
    kind = pick(pool, "relu", "relu", "relu", "relu6", "hardtanh", "clamp")
    bounds: dict[str, dict[str, Any]] = {"hardtanh": {"min": 0.0, "max": 6.0}, "clamp": {"min": 0.0, "max": None}}
    return pool.add(kind, source, **bounds.get(kind, {}))


def factory(pool: GraphPool, shape: tuple[int, ...]) -> str:
    kind = pick(pool, "full", "zeros", "ones", "full")
    parameters = {"value": pick(pool, 0.0, 1.0, 0.5, -2.0)} if kind == "full" else {}
    return pool.constant(kind, shape, **parameters)


def combine(pool: GraphPool, kind: str, *operands: str) -> str:
    """Any operator of two or more values that meet: cat and stack along dimension 1 or 0, or arithmetic."""
    attributes: dict[str, Any] = {"scalar": None, "side": None}
    if kind in ("cat", "stack"):
        attributes = {"dim": min(1, len(pool.shape(operands[0])) - 1)}
    elif kind in ("minimum", "maximum"):
        attributes = {}
    elif kind in ("add", "sub"):
        attributes["alpha"] = 1
    return pool.add(kind, *operands, **attributes)
