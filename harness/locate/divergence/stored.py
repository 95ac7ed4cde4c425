"""What a step stored: values with the address of each element.

Chain buffers (Ethos-U85) count as regions below ``CHAIN``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harness.ethosu.arithmetic import Ints
from harness.ethosu.memory import Memory
from harness.ethosu.records import Step

CHAIN = -16
"""Chain buffer n is region ``CHAIN - n``."""


@dataclass(frozen=True)
class Stored:
    """Elements in memory; most often what one step stored.

    :param region: as in ``Access``; chain buffers from ``CHAIN`` down.
    :param addresses: byte address of each element, in the shape of ``values``.
    :param size: bytes of an element.
    :param values: as they are in memory, sign included.
    :param copied: the step's operand, if that has the same shape: what a plain copy would have stored.
    :param sources: indices of steps whose results it read.
    :param strides: of a feature map in bricks: bytes from row to row and from brick to brick.
    """

    step: Step
    region: int
    addresses: Ints
    size: int
    values: Ints
    copied: Ints | None = None
    sources: frozenset[int] = frozenset()
    strides: tuple[int, int] | None = None

    @property
    def index(self) -> int:
        return self.step.index

    @cached_property
    def low(self) -> int:
        return int(self.addresses.min())

    @cached_property
    def high(self) -> int:
        """The byte after the last."""
        return int(self.addresses.max()) + self.size

    @cached_property
    def bytes(self) -> Ints:
        """Address of every byte."""
        return (self.addresses.ravel()[:, None] + np.arange(self.size)).ravel()

    def put(self, memory: Memory) -> None:
        """What the step did to memory, without executing it again."""
        if self.region > CHAIN:
            held = memory.region(self.region)
            held.data[self.bytes], held.written[self.bytes] = self._held, 255

    @cached_property
    def _held(self) -> NDArray[np.uint8]:
        return self.values.ravel().astype(f"<i{self.size}").view(np.uint8)
