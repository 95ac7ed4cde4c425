"""Calibration distributions: what an input's values look like while ranges are observed.

Ranges decide scales and zero points, and most of what has gone wrong upstream began with an
unusual one, so there is an entry for each way in which ranges come out unusual. ``draw`` only
picks from short lists of plain numbers and shrinks to the plainest.

Units: float values in the module's own domain, from 1e-3 to 1e4 in size. A sample is drawn by
index, because ``disjoint`` is about how the samples differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from harness.case.arrays import Array
from harness.case.case import Attributes
from harness.case.distributions import CalibrationKind
from harness.case.operators import Draw

Random = np.random.Generator
Shape = tuple[int, ...]

PAIRS = [(-1.0, 1.0), (-2.0, 2.0), (0.0, 1.0), (-0.5, 3.0), (-6.0, 6.0)]


def _choice(*keys: str, options: Sequence[tuple[Any, ...]]) -> Any:
    """A ``draw`` that picks one row of ``options``; its columns are the parameters ``keys``."""

    def draw(draw_one: Draw) -> Attributes:
        return dict(zip(keys, draw_one(st.sampled_from(options)), strict=True))

    return draw


def _uniform(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.uniform(p["low"], p["high"], shape))


def _normal(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.normal(p["mean"], p["std"], shape))


def _shifted(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.uniform(p["low"], p["high"], shape) + p["offset"])


def _one_sided(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.uniform(0.0, 1.0, shape) * p["bound"])


def _constant(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.full(shape, p["value"])


def _zero(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.zeros(shape)


def _tiny(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(p["center"] + rng.uniform(-0.5, 0.5, shape) * p["width"])


def _huge(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.uniform(-1.0, 1.0, shape) * p["bound"])


def _outlier(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    """One element far outside: at a place of its own in each sample."""
    values = np.asarray(rng.uniform(-1.0, 1.0, shape) * p["scale"])
    values.flat[int(rng.integers(0, values.size))] = p["outlier"]
    return values


def _ramp(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.linspace(p["low"], p["high"], int(np.prod(shape, dtype=np.int64))).reshape(shape)


def _channel_skew(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    """Channels (dimension 1, or the only one) of scales from 1 to ``ratio``, in geometric steps."""
    axis = min(1, len(shape) - 1)
    channels = shape[axis] if shape else 1
    scales = p["ratio"] ** (np.arange(channels) / max(channels - 1, 1))
    view = tuple(channels if place == axis else 1 for place in range(len(shape)))
    return np.asarray(rng.uniform(-1.0, 1.0, shape) * scales.reshape(view))


def _disjoint(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    """Sample k lies in [k * gap, k * gap + width]: no two samples share a value if gap > width."""
    return np.asarray(index * p["gap"] + rng.uniform(0.0, p["width"], shape))


def _indices(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    return np.asarray(rng.integers(0, p["below"], shape), dtype=np.float64)


def _recorded(rng: Random, shape: Shape, p: Attributes, index: int, count: int) -> Array:
    raise AssertionError("recorded values come from the case's tensor file (harness.case.sampling)")


DISTRIBUTIONS: tuple[CalibrationKind, ...] = (
    CalibrationKind(
        "uniform", {"low": "lower end", "high": "upper end"}, _choice("low", "high", options=PAIRS), _uniform
    ),
    CalibrationKind(
        "normal",
        {"mean": "mean", "std": "standard deviation"},
        _choice("mean", "std", options=[(0.0, 1.0), (0.0, 0.3), (1.0, 1.0), (-2.0, 0.5)]),
        _normal,
    ),
    CalibrationKind(
        "shifted",
        {"low": "lower end", "high": "upper end", "offset": "what is added"},
        _choice(
            "low",
            "high",
            "offset",
            options=[(0.0, 1.0, -0.065), (-1.0, 1.0, 0.5), (-1.0, 1.0, -3.0), (0.0, 1.0, 10.0), (0.0, 2.0, -0.01)],
        ),
        _shifted,
    ),
    CalibrationKind(
        "one_sided",
        {"bound": "the end that is not zero"},
        _choice("bound", options=[(1.0,), (-1.0,), (6.0,), (-0.1,), (255.0,)]),
        _one_sided,
    ),
    CalibrationKind(
        "constant",
        {"value": "the value of every element"},
        _choice("value", options=[(1.0,), (-1.0,), (0.5,), (-0.001,), (100.0,)]),
        _constant,
    ),
    CalibrationKind("zero", {}, _choice(options=[()]), _zero),
    CalibrationKind(
        "tiny_range",
        {"center": "middle", "width": "width of the range"},
        _choice("center", "width", options=[(0.0, 0.001), (1.0, 0.001), (0.0, 0.01), (-0.5, 0.002)]),
        _tiny,
    ),
    CalibrationKind(
        "huge_range", {"bound": "largest magnitude"}, _choice("bound", options=[(100.0,), (1000.0,), (10000.0,)]), _huge
    ),
    CalibrationKind(
        "outlier",
        {"scale": "magnitude of the rest", "outlier": "the one far value"},
        _choice("scale", "outlier", options=[(1.0, 20.0), (1.0, -100.0), (0.1, 10.0), (1.0, 1000.0)]),
        _outlier,
    ),
    CalibrationKind("ramp", {"low": "first value", "high": "last value"}, _choice("low", "high", options=PAIRS), _ramp),
    CalibrationKind(
        "channel_skew",
        {"ratio": "scale of the last channel over that of the first"},
        _choice("ratio", options=[(10.0,), (100.0,), (0.01,), (1000.0,)]),
        _channel_skew,
    ),
    CalibrationKind(
        "disjoint",
        {"width": "width of each sample's range", "gap": "distance of their starts"},
        _choice("width", "gap", options=[(1.0, 2.0), (0.5, -1.0), (1.0, 10.0)]),
        _disjoint,
    ),
    CalibrationKind(
        "indices",
        {"below": "the bound that no integer reaches"},
        _choice("below", options=[(16,), (2,), (64,), (100,)]),
        _indices,
        tags=frozenset({"integer"}),
    ),
    CalibrationKind(
        "recorded",
        {"prefix": "tensors <prefix>.0, <prefix>.1… of the case's file"},
        _choice("prefix", options=[("sample",)]),
        _recorded,
        tags=frozenset({"stored"}),
    ),
)
