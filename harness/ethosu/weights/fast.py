"""The fast weight format of Ethos-U85: a header of 32 bytes and weights or indices of equal width.

The header says whether weights are stored as they are (*raw*, 8 bits each, moved by a *zero
adjustment* so that they fit) or as indices of a table of sixteen (4 bits each) or, if the table
is *small*, four (2 bits). There is one stream whatever the cores: it holds what would be the
cores' streams in turns of as many weights as lie between two roundings of the order.
Zeros fill it up to a multiple of 32 bytes.

Facts: regor/dependencies/mlw_codec/source/mlw_encode_fwd.cpp, and EthosU85WeightOrderingFwd in
ethosu85/ethos_u85_weight_encoder.cpp, of ethos-u-vela 5.1.0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.records import StreamError
from harness.ethosu.weights.bits import BitReader
from harness.ethosu.weights.order import Order

Values = NDArray[np.int16]

ALIGNMENT = 32
_HEADER = 32
_ADJUSTMENT_AT, _TABLE_AT, _TABLE_BITS, _TABLE_SIZE = 104, 112, 9, 16


def decode_fast(stream: bytes, wanted: int) -> tuple[Values, int, list[tuple[str, str]]]:
    """The weights of a stream, in stream order.

    :param wanted: how many the operation needs.
    :returns: ``wanted`` weights (zeros where the stream has fewer), how many the stream has if
        those that its padding must hold do not count, and issues about padding.
    :raises StreamError: the stream is shorter than its header, or says that it is raw and has a table.
    """
    if len(stream) < _HEADER:
        raise StreamError(f"a fast weight stream of {len(stream)} bytes is shorter than its header of {_HEADER}")
    reader = BitReader(stream[:_HEADER])
    raw, small = bool(reader.get(0, 1)), bool(reader.get(1, 1))
    if raw and small:
        raise StreamError("the header of the fast weight stream says raw and small table at once")
    bits = 8 if raw else 2 if small else 4
    body = np.frombuffer(stream, np.uint8, offset=_HEADER)
    held = len(body) * 8 // bits
    needed = -(-wanted * bits // 8)
    codes = _codes(body[:needed], bits)
    issues = []
    if (codes[wanted:] != 0).any() or body[needed : -(-needed // ALIGNMENT) * ALIGNMENT].any():
        issues.append(("weight-padding", "bits behind the last weight of the fast weight stream are not zero"))
    if any(reader.get(at, min(48, _ADJUSTMENT_AT - at)) for at in range(2, _ADJUSTMENT_AT, 48)):
        issues.append(("weight-padding", "reserved bits of the fast weight stream's header are not zero"))
    weights = np.zeros(wanted, np.int16)
    found = codes[:wanted]
    weights[: len(found)] = _raw(found, reader) if raw else _table(reader)[found]
    aligned = (-(-(_HEADER + needed) // ALIGNMENT) * ALIGNMENT - _HEADER) * 8 // bits
    return weights, wanted if wanted <= held <= aligned else held, issues


def _codes(body: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    if bits == 8:
        return body
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes: NDArray[np.uint8] = body[:, None] >> shifts & np.uint8((1 << bits) - 1)
    return codes.ravel()


def _raw(codes: NDArray[np.uint8], reader: BitReader) -> Values:
    adjustment = reader.get(_ADJUSTMENT_AT, 8)
    return codes.view(np.int8).astype(np.int16) - np.int16(adjustment - (adjustment >> 7 << 8))


def _table(reader: BitReader) -> Values:
    folded = reader.take(_TABLE_AT + _TABLE_BITS * np.arange(_TABLE_SIZE, dtype=np.int64), _TABLE_BITS).astype(np.int16)
    return np.where(folded & 1, -(folded >> 1), folded >> 1).astype(np.int16)


def deal(weights: Values, order: Order) -> list[Values]:
    """Take the cores' streams out of one."""
    cores = len(order.cores)
    if cores == 1:
        return [weights]
    turns = weights.reshape(-1, cores, order.slot * order.round)
    return [turns[:, core].ravel() for core in range(cores)]
