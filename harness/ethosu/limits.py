"""What the model refuses because of its size: bounds that hardly any stream of Vela's comes near.

Shapes and counts are 16-bit registers and strides may be zero, so a stream of a few bytes can ask
for arrays of any size and for any number of operations. Memory and time of one execution stay
bounded:

* ``MOST_ELEMENTS`` in any array of an operation: a feature map, upscaled or padded, or weights. The
  model holds a handful of such arrays at once, of 8 bytes an element.
* ``MOST_TAPS`` of a kernel. The largest pooling window of Ethos-U55 and U65 is 256 by 256 (Vela's SUPPORTED_OPS.md); of
  Ethos-U85 no limit is public, and Vela 5.1.0 gives it what TOSA allows.
* ``MOST_RUNS`` of a DMA, and ``MOST_BYTES`` in all of them together.
* ``MOST_REPEATED`` operations once a stream has branched (a loop that never ends).
* ``MOST_WORK`` in a whole stream, in multiplications; other things count as what takes the same
  time. It stands for a minute or two, on one input. Vela does emit more for some operators (a pixel
  shuffle of 1.5 MB on Ethos-U55 becomes 479,425 operations), so that nothing is said of what comes behind.
"""

from __future__ import annotations

import math

from harness.ethosu.records import StreamError, Unimplemented

MOST_ELEMENTS = 1 << 26
MOST_TAPS = 1 << 20
MOST_RUNS = 1 << 20
MOST_BYTES = 1 << 28
MOST_REPEATED = 10_000
MOST_WORK = 1 << 35

AN_OPERATION, AN_ELEMENT, A_TAP, A_RUN = 1 << 18, 1 << 6, 1 << 14, 1 << 12
"""What they take, in multiplications of a matrix product."""


def check_elements(what: str, *sizes: int) -> None:
    """:raises StreamError: an array of these sizes is more than the model holds."""
    if math.prod(sizes) > MOST_ELEMENTS:
        shape = "x".join(map(str, sizes))
        raise StreamError(f"{what} of {shape} elements is more than the {MOST_ELEMENTS} that the model allows")


class Budget:
    """The work that a stream may still do.

    :param most: in multiplications.
    """

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def spend(self, work: int) -> None:
        """:raises Unimplemented: nothing is left."""
        self._left -= work
        if self._left < 0:
            raise Unimplemented(f"the stream is more work than {self._most} multiplications, where the model stops")
