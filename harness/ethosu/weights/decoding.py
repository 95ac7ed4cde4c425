"""An operation's weights from its streams.

A stream is decoded to weights in stream order (``standard``, ``fast``), those are placed by row,
column and channel (``order``, ``placing``), and what lies outside of the tensor is cut off after
a look at it: it must be zero. Memory is bounded by what the streams can hold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.records import StreamError
from harness.ethosu.weights.fast import deal, decode_fast
from harness.ethosu.weights.geometry import WeightGeometry, Weights, WeightStatistics, check_geometry
from harness.ethosu.weights.order import Order, order_of
from harness.ethosu.weights.placing import place
from harness.ethosu.weights.standard import MOST_ELEMENTS_PER_BYTE, decode_standard

Values = NDArray[np.int16]
Issues = list[tuple[str, str]]


def decode_weights(streams: tuple[bytes, ...], geometry: WeightGeometry, accelerator: Accelerator) -> Weights:
    """Decode the weights of one CONV or DEPTHWISE.

    :param streams: WEIGHT_LENGTH bytes from WEIGHT_BASE, then those of WEIGHT1 to WEIGHT3, one for
        each core; b"" where a length is 0. Missing ones count as empty.
    :raises StreamError: a stream that is no weight stream, that is cut off inside a slice or too
        short for so many weights, or more streams than cores.
    :raises Unimplemented: an order that no encoder writes.
    """
    check_geometry(geometry, accelerator)
    length = sum(map(len, streams))
    if geometry.elements > MOST_ELEMENTS_PER_BYTE * length:
        raise StreamError(
            f"{length} bytes of weight streams cannot hold the {geometry.elements} weights of {geometry.shape}"
        )
    order = order_of(geometry, accelerator)
    issues: Issues = []
    dealt, elements = (_fast if geometry.fast else _standard)(streams, order, issues)
    values = np.empty(geometry.shape, np.int16)
    outside = 0
    for core, weights in enumerate(dealt):
        if not len(weights):
            continue
        placed = place(weights, order, core)[..., : geometry.shape[3]].transpose(2, 0, 1, 3)
        channels = order.cores[core].channels
        inside = channels < geometry.ofm_depth
        kept = placed[inside]
        values[channels[inside]] = kept
        outside += int(np.count_nonzero(weights)) - int(np.count_nonzero(kept))
    if outside:
        issues.append(
            ("weight-padding", f"{outside} weights that are not zero lie outside the tensor of {geometry.shape}")
        )
    values.flags.writeable = False
    zeros = values.size - int(np.count_nonzero(values))
    statistics = WeightStatistics(length, elements, zeros, int(values.min()), int(values.max()))
    return Weights(values, tuple(issues), statistics)


def _standard(streams: tuple[bytes, ...], order: Order, issues: Issues) -> tuple[list[Values], int]:
    """One stream for each core."""
    if any(streams[len(order.cores) :]):
        raise StreamError(f"{len(streams)} weight streams for {len(order.cores)} cores")
    dealt = []
    elements = 0
    for core in range(len(order.cores)):
        name = f"weight stream {core}" if len(order.cores) > 1 else "weight stream"
        stream = streams[core] if core < len(streams) else b""
        wanted = order.elements(core)
        if wanted > MOST_ELEMENTS_PER_BYTE * len(stream):
            raise StreamError(f"{name}: {len(stream)} bytes cannot hold the {wanted} weights of the operation")
        try:
            weights, held, found = decode_standard(stream, wanted)
        except StreamError as error:
            raise StreamError(f"{name}: {error.problem}") from None
        _compare(name, wanted, held, issues)
        issues += ((kind, f"{name}: {message}") for kind, message in found)
        dealt.append(weights)
        elements += held
    return dealt, elements


def _fast(streams: tuple[bytes, ...], order: Order, issues: Issues) -> tuple[list[Values], int]:
    """One stream for all cores."""
    if any(streams[1:]):
        raise StreamError("more than one weight stream in the fast format, which has one for all cores")
    wanted = sum(order.elements(core) for core in range(len(order.cores)))
    if wanted > 4 * len(streams[0]):
        raise StreamError(f"weight stream: {len(streams[0])} bytes cannot hold the {wanted} weights of the operation")
    weights, held, found = decode_fast(streams[0], wanted)
    _compare("weight stream", wanted, held, issues)
    issues += found
    return deal(weights, order), held


def _compare(name: str, wanted: int, held: int, issues: Issues) -> None:
    if held != wanted:
        much = "ends early" if held < wanted else "goes on"
        issues.append(("stream-length", f"{name} {much}: it has {held} weights, the operation takes {wanted}"))
