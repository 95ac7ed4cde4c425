"""Calibration samples and evaluation inputs of a case, as numpy arrays.

Evaluation inputs are drawn apart from calibration and always include, besides the calibration
samples themselves, the end points of what calibration saw, values that saturate, and fresh draws
from the same distributions. Each carries an ``origin`` so that a finding can say whether it shows
inside the calibrated range.

Invariants: the same case gives the same bits on every machine (numpy PCG64, seeded by the case's
seeds and the input's name); all float inputs are finite.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.case.arrays import Array
from harness.case.case import Case, Input
from harness.case.errors import BadInput
from harness.case.registry import calibration_kinds
from harness.case.traits import ATEN_WRITING_AT

CALIBRATION, ENDPOINTS, FRESH, SATURATING, GIVEN = ("calibration", "end points", "fresh draw", "saturating", "given")
SATURATION = 4.0  # how far beyond the calibrated range, in units of its width


@dataclass(frozen=True, eq=False)
class EvaluationInput:
    """One tuple of module inputs and where it comes from.

    ``in_range`` is True if no element lies outside what calibration saw for its input.
    """

    origin: str
    arrays: tuple[Array, ...]
    in_range: bool


def calibration_samples(case: Case, tensors: Mapping[str, Array] | None = None) -> list[tuple[Array, ...]]:
    """The case's calibration samples, in order: one tuple (an array an input) a sample."""
    return _draw(case, tensors or {}, case.seeds.calibration, case.samples)


def evaluation_inputs(case: Case, tensors: Mapping[str, Array] | None = None) -> list[EvaluationInput]:
    """The inputs on which every leg runs (deterministic, duplicates dropped)."""
    tensors = tensors or {}
    samples = calibration_samples(case, tensors)
    ranges = [
        (min(float(s[i].min()) for s in samples), max(float(s[i].max()) for s in samples))
        for i in range(len(case.graph.inputs))
    ]
    chosen: list[tuple[str, tuple[Array, ...]]] = [(CALIBRATION, sample) for sample in samples]
    chosen += [(GIVEN, given) for given in _given(case, tensors)]
    chosen.append((ENDPOINTS, _patterned(case, ranges, samples[0], widen=0.0)))
    chosen += [(FRESH, fresh) for fresh in _draw(case, tensors, case.seeds.evaluation + 1_000_003, 1)]
    chosen.append((SATURATING, _patterned(case, ranges, samples[0], widen=SATURATION)))
    kept: dict[bytes, EvaluationInput] = {}
    for origin, arrays in chosen:
        key = b"".join(array.tobytes() for array in arrays)
        inside = all(
            low <= array.min() and array.max() <= high for array, (low, high) in zip(arrays, ranges, strict=True)
        )
        kept.setdefault(key, EvaluationInput(origin, arrays, inside))
    return list(kept.values())


def _draw(case: Case, tensors: Mapping[str, Array], seed: int, count: int) -> list[tuple[Array, ...]]:
    samples = []
    for index in range(count):
        sample = []
        for item in case.graph.inputs:
            sample.append(_sample(case, item, tensors, seed, index, count))
        samples.append(tuple(sample))
    return samples


def _sample(case: Case, item: Input, tensors: Mapping[str, Array], seed: int, index: int, count: int) -> Array:
    distribution = case.calibration[item.name]
    if distribution.kind == "recorded":
        return _recorded(case, item, tensors, index)
    rng = np.random.default_rng([seed, zlib.crc32(item.name.encode()), index])
    kind = calibration_kinds()[distribution.kind]
    values = np.asarray(kind.sample(rng, item.shape, distribution.parameters, index, count))
    if item.dtype == "bool":
        return np.asarray(values > 0)
    if item.dtype == "float16":
        return values.astype(np.float16).reshape(item.shape)
    if item.dtype != "float32":
        return np.asarray(np.clip(np.round(values), 0, 100)).astype(item.dtype)
    return values.astype(np.float32).reshape(item.shape)


def _recorded(case: Case, item: Input, tensors: Mapping[str, Array], index: int) -> Array:
    key = f"{case.calibration[item.name].parameters['prefix']}.{index % case.samples}"
    if key not in tensors:
        raise BadInput(
            f"$.calibration.{item.name}",
            f"tensor {key!r} is not in {case.tensors or 'any file'}",
            "keep the safetensors file beside the case",
        )
    values = tensors[key]
    if values.shape != item.shape:
        raise BadInput(
            f"$.calibration.{item.name}",
            f"tensor {key!r} has shape {list(values.shape)}, the input {list(item.shape)}",
            "restore the file that belongs to the case",
        )
    return values


def _given(case: Case, tensors: Mapping[str, Array]) -> list[tuple[Array, ...]]:
    """Evaluation tuples that the user gave (``inputs`` of a checked file), if any."""
    given: list[tuple[Array, ...]] = []
    while case.graph.inputs and f"given.{len(given)}.{case.graph.inputs[0].name}" in tensors:
        prefix = f"given.{len(given)}"
        given.append(tuple(tensors[f"{prefix}.{item.name}"] for item in case.graph.inputs))
    return given


def _patterned(
    case: Case, ranges: Sequence[tuple[float, float]], sample: tuple[Array, ...], *, widen: float
) -> tuple[Array, ...]:
    """Alternate the ends of each input's range (widened by ``widen`` of its width).

    :param sample: a calibration sample, whose integers are kept where they may be indices that must not repeat.
    """
    arrays = []
    writes = any(node.operator.rpartition(".")[0] in ATEN_WRITING_AT for node in case.graph.nodes)
    for item, (low, high), given in zip(case.graph.inputs, ranges, sample, strict=True):
        if writes and item.dtype.startswith("int"):
            arrays.append(given)
            continue
        width = (high - low) or max(abs(high), 1.0)
        low, high = low - widen * width, high + widen * width
        count = int(np.prod(item.shape, dtype=np.int64))
        rng = np.random.default_rng([case.seeds.evaluation, zlib.crc32(item.name.encode())])
        values = np.where(rng.integers(0, 2, count) == 0, low, high).reshape(item.shape)
        if item.dtype == "bool":
            arrays.append(values > 0)
        elif item.dtype == "float16":
            most = float(np.finfo(np.float16).max)
            arrays.append(np.clip(values, -most, most).astype(np.float16))
        elif item.dtype != "float32":
            arrays.append(np.clip(np.round(values), *_integer_range(low, high, widen)).astype(item.dtype))
        else:
            arrays.append(values.astype(np.float32))
    return tuple(arrays)


def _integer_range(low: float, high: float, widen: float) -> tuple[float, float]:
    """Integer inputs are indices or flags: never leave the calibrated range."""
    inset = widen / (1 + 2 * widen) * (high - low)
    return low + inset, high - inset
