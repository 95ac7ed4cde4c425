"""Reading numbers of a few bits at many positions of a byte stream at once.

A stream is read lowest bit first: bit ``p`` is bit ``p % 8`` of byte ``p // 8``. ``BitReader``
holds a 32-bit window for every byte, so that a number of up to 25 bits at any bit position is
one look-up, a shift and a mask; whole arrays of positions are read that way.
"""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_GUARD = 16
_window = struct.Struct("<Q").unpack_from


class BitReader:
    """A stream to read from.

    :ivar size: bits of the stream itself.
    :ivar padded: the stream and 16 zero bytes, as loops look a little too far before they notice its end.
    """

    def __init__(self, stream: bytes) -> None:
        self.size = 8 * len(stream)
        self.padded = stream + bytes(_GUARD)
        octets = np.frombuffer(self.padded, np.uint8).astype(np.uint32)
        self._windows = octets[:-3] | octets[1:-2] << 8 | octets[2:-1] << 16 | octets[3:] << 24

    def get(self, position: int, bits: int) -> int:
        """The number of up to 56 bits at one position, which is inside the stream or at its end."""
        return int(_window(self.padded, position >> 3)[0]) >> (position & 7) & (1 << bits) - 1

    def take(self, positions: Ints, bits: int | NDArray[np.uint8]) -> NDArray[np.uint32]:
        """The numbers of ``bits`` bits (up to 25, one for all or one for each) at ``positions``.

        A position may lie up to 96 bits behind the end.
        """
        window: NDArray[np.uint32] = self._windows[positions >> 3] >> (positions & 7).astype(np.uint32)
        one = np.uint32(1)
        window &= (one << np.asarray(bits).astype(np.uint32)) - one
        return window
