"""Where the tensors of a TOSA graph show in the memory of a payload.

A *view* is a TOSA tensor's values as elements of some size: converted to that size, or its bytes
taken as smaller or larger elements (32-bit values are copied as pairs of 16-bit ones); true is 1 or
-1. A *placement* is a view at an address of a region, in row-major order or in bricks (NHCWB16) of
some width and depth. It says for every byte address which element of the view belongs there, so
slices, stripes, concatenations and reversed or transposed writes need no special care.

Nothing says which tensors Vela kept, nor where: it fuses operators, drops reshapes and reuses
memory. Placements are therefore found by value: a placement *holds* after a step if all of its bytes
have the values of the view. What holds and is no coincidence explains the steps that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.case.arrays import Array
from harness.ethosu.arithmetic import Ints
from harness.ethosu.featuremap import BRICK
from harness.ethosu.memory import Memory
from harness.locate.divergence.stored import CHAIN, Stored

_PROBES, _ENOUGH_SAMPLES = 16, 8
_MOST_VIEW = 1 << 22


@dataclass(frozen=True, eq=False)
class View:
    """A tensor's values as elements of ``size`` bytes, unsigned.

    :param kind: ``converted``, ``complement`` (-1 - x: Ethos-U55 takes minima as maxima of those), ``bytes``, or
        ``mask`` (true as -1).
    """

    tensor: str
    kind: str
    size: int
    values: NDArray[Any]

    @cached_property
    def constant(self) -> bool:
        """More than one element, and all of them the same."""
        return self.values.size > 1 and bool((self.values == self.values[0]).all())

    @cached_property
    def bits(self) -> float:
        """Information in the values: how unlikely it is to meet them by chance."""
        _, counts = np.unique(self.values, return_counts=True)
        share = counts / self.values.size
        return float(-(counts * np.log2(share)).sum())


def views(tensor: str, values: Array, size: int) -> Iterator[View]:
    """The views of a tensor with elements of ``size`` bytes that lose nothing."""
    kinds = ("converted", "mask") if values.dtype == np.bool_ else ("converted", "complement")
    limit = 1 << (8 * size - 1)
    if size >= values.dtype.itemsize or bool((values >= -limit).all() and (values < limit).all()):
        yield from (view(tensor, values, size, kind) for kind in kinds)
    if values.dtype.itemsize != size and values.nbytes % size == 0 and values.dtype != np.bool_:
        yield view(tensor, values, size, "bytes")


def view(tensor: str, values: Array, size: int, kind: str) -> View:
    """One view of a tensor; a conversion keeps the low bytes."""
    flat, unsigned = values.ravel(), f"<u{size}"
    if kind == "bytes":
        return View(tensor, kind, size, np.frombuffer(flat.tobytes(), unsigned))
    wide = flat.astype(np.int64)
    chosen = {"converted": wide, "complement": ~wide, "mask": -wide}[kind]
    return View(tensor, kind, size, chosen.astype(unsigned))


@dataclass(frozen=True)
class Layout:
    """Order of the elements in memory; row-major if ``stride_y`` is 0.

    :param width: elements of a row of bricks.
    :param depth: channels.
    """

    stride_y: int = 0
    stride_c: int = 0
    width: int = 0
    depth: int = 0

    def elements(self, offsets: Ints, size: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Which element is at each byte offset, and whether any is: not at negative ones nor inside elements.

        :param size: bytes of an element.
        """
        if not self.stride_y:
            index, rest = np.divmod(offsets, size)
            return index, (rest == 0) & (offsets >= 0)
        row, rest = np.divmod(offsets, self.stride_y)
        brick, rest = np.divmod(rest, self.stride_c)
        column, rest = np.divmod(rest, BRICK * size)
        channel = brick * BRICK + rest // size
        inside = (offsets >= 0) & (column < self.width) & (channel < self.depth) & (rest % size == 0)
        return (row * self.width + column) * self.depth + channel, inside


LINEAR = Layout()


@dataclass(frozen=True, eq=False)
class Placement:
    """A view at an address."""

    view: View
    region: int
    start: int
    layout: Layout = LINEAR

    @cached_property
    def end(self) -> int:
        """The byte after the last."""
        if self.layout is LINEAR:
            return self.start + self.view.values.size * self.view.size
        return int(self.addresses.max()) + self.view.size

    def elements(self, addresses: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Index into the view of what belongs at each address, and whether anything does."""
        index, inside = self.layout.elements(addresses - self.start, self.view.size)
        inside = inside & (index < self.view.values.size)
        return np.where(inside, index, 0), inside

    @cached_property
    def addresses(self) -> Ints:
        """Byte address of every element of the view."""
        count, size, layout = self.view.values.size, self.view.size, self.layout
        index = np.arange(count)
        if layout is LINEAR:
            return np.asarray(self.start + index * size)
        pixel, channel = np.divmod(index, layout.depth)
        row, column = np.divmod(pixel, layout.width)
        brick, rest = np.divmod(channel, BRICK)
        place = self.start + row * layout.stride_y + brick * layout.stride_c
        return np.asarray(place + (column * BRICK + rest) * size)

    def holds(self, data: NDArray[np.uint8]) -> bool:
        """Whether memory has the view's values here."""
        wanted, size = self.view.values, self.view.size
        if self.end > len(data):
            return False
        if self.layout is LINEAR:
            probes = np.linspace(0, wanted.size - 1, min(_PROBES, wanted.size)).astype(np.int64)
            first = self.start + probes * size
            if (data[first] != (wanted[probes] & 0xFF)).any():
                return False
            return bool(data[self.start : self.end].tobytes() == wanted.tobytes())
        return all(
            bool((data[self.addresses + byte] == (wanted >> (8 * byte)).astype(np.uint8)).all()) for byte in range(size)
        )

    def expected(self, stored: Stored) -> tuple[Ints, NDArray[np.bool_]]:
        """What a step should have stored, in the form of its values, and where the placement says so."""
        index, inside = self.elements(stored.addresses)
        return self.view.values[index].astype(np.int64), inside


class Candidate(NamedTuple):
    """A placement that may be what a step's result belongs to.

    :param share: of its elements, by a sample, that are as the placement says.
    :param likeness: how near they are to what it says, 0 to 1.
    """

    share: float
    likeness: float
    placement: Placement


class Catalogue:
    """All views of a graph's tensors, and the placements that a step's result may be part of.

    :param values: the tensors' values by name.
    :param anchors: addresses in each region where a tensor may begin.
    :ivar given: how many placements it has given.
    """

    def __init__(self, values: Mapping[str, Array], anchors: Mapping[int, Sequence[int]]) -> None:
        self._values = values
        self._anchors = {region: np.array(starts, np.int64) for region, starts in anchors.items()}
        self._tables: dict[int, _Table] = {}
        self.given = 0

    def placements(self, stored: Stored, least: float) -> list[Candidate]:
        """Placements that the step's result would lie in completely.

        :param least: the smallest share of its elements, by a sample of them, that is as expected.
        """
        table = self._table(stored.size)
        if stored.region <= CHAIN:
            starts = np.zeros(1, np.int64)
        else:
            known = self._anchors.get(stored.region, np.zeros(0, np.int64))
            starts = known[known <= stored.low]
        found = [placed for layout in _layouts(stored) for placed in table.probe(stored, starts, layout, least)]
        self.given += len(found)
        return found

    def _table(self, size: int) -> _Table:
        if size not in self._tables:
            self._tables[size] = _Table(
                [
                    item
                    for name, values in self._values.items()
                    if 0 < values.size <= _MOST_VIEW and values.dtype.kind in "biu"
                    for item in views(name, values, size)
                ],
                size,
            )
        return self._tables[size]


class _Table:
    """Views with elements of one size, one behind the other, to be probed all at once."""

    def __init__(self, held: Sequence[View], size: int) -> None:
        self._views = held
        self._lengths = np.array([item.values.size for item in held], np.int64)
        self._offsets = np.cumsum(self._lengths) - self._lengths
        self._flat = np.concatenate([item.values for item in held]) if held else np.zeros(0, f"<u{size}")

    def probe(self, stored: Stored, starts: Ints, layout: Layout, least: float) -> list[Candidate]:
        """Placements at these addresses, by a sample of the step's elements."""
        if least == 1:  # a look at one element leaves few places to be looked at closely
            _, at, wanted, values = self._met(stored, starts, layout, 1)
            starts = starts[np.unique(at[wanted[:, 0] == values])]
        which, at, wanted, values = self._met(stored, starts, layout, _PROBES)
        share = (wanted == values).mean(axis=1)
        likeness = _likeness(wanted, values) if least < 1 else np.ones(len(share))
        return [
            Candidate(
                float(share[n]),
                float(likeness[n]),
                Placement(self._views[which[n]], stored.region, int(starts[at[n]]), layout),
            )
            for n in np.flatnonzero(share >= least)
        ]

    def _met(
        self, stored: Stored, starts: Ints, layout: Layout, probes: int
    ) -> tuple[Ints, Ints, NDArray[Any], NDArray[Any]]:
        """Views and starts that a step's result fits at, some of their elements, and what the step has there."""
        chosen = np.linspace(0, stored.values.size - 1, min(probes, stored.values.size)).astype(np.int64)
        addresses = stored.addresses.reshape(-1)[chosen]
        values = stored.values.reshape(-1)[chosen].astype(f"<u{stored.size}")
        index, inside = layout.elements(addresses[None, :] - starts[:, None], stored.size)
        last, _ = layout.elements(stored.high - stored.size - starts, stored.size)
        most = np.maximum(index.max(axis=1, initial=0), last if layout is LINEAR else 0)
        which, at = self._longer(most, inside.all(axis=1), ordered=probes > 1)
        if layout is not LINEAR:
            whole = self._lengths[which] % (layout.width * layout.depth) == 0
            which, at = which[whole], at[whole]
        return which, at, self._flat[self._offsets[which][:, None] + index[at]], values

    def _longer(self, most: Ints, wanted: NDArray[np.bool_], ordered: bool) -> tuple[Ints, Ints]:
        """Views that have an element at ``most`` of a start, for every start that is wanted.

        :param ordered: the views in their order; or else as it comes.
        A stream of 500 steps has 1,200 starts and 560 views, and 2 % of these pairs fit: the others are not looked at.
        """
        counts = np.where(wanted, len(self._lengths) - np.searchsorted(self._by_length[1], most, "right"), 0)
        at = np.repeat(np.arange(len(most)), counts)
        place = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        which = self._by_length[0][-1 - place]
        order = np.lexsort((at, which)) if ordered else slice(None)
        return which[order], at[order]

    @cached_property
    def _by_length(self) -> tuple[Ints, Ints]:
        """The views from the shortest to the longest, and their lengths."""
        order = np.argsort(self._lengths, kind="stable")
        return order, self._lengths[order]


def _likeness(wanted: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """How near each row is to the values: absolute correlation where there are enough of them.

    Of few or constant values only the distance tells anything: up to a half for equal ones.
    """
    signed = f"<i{values.dtype.itemsize}"
    one, other = wanted.view(signed).astype(np.float64), values.view(signed).astype(np.float64)
    near: NDArray[np.float64] = 0.5 / (1 + np.abs(one - other).mean(axis=1))
    one, other = one - one.mean(axis=1, keepdims=True), other - other.mean()
    scale = np.sqrt((one**2).sum(axis=1) * (other**2).sum())
    alike = np.abs(one @ other) / np.where(scale > 0, scale, np.inf)
    return np.asarray(np.maximum(alike, near)) if values.size >= _ENOUGH_SAMPLES else near


def _layouts(stored: Stored) -> Iterator[Layout]:
    """Layouts that agree with a step's strides; the depth is only known to a brick."""
    if stored.strides is None:
        yield LINEAR
        return
    stride_y, stride_c = stored.strides
    width, rest = divmod(stride_c, BRICK * stored.size)
    if rest or width < 1 or stride_y < stride_c:
        return
    most = -(-stride_y // stride_c) * BRICK
    yield from (Layout(stride_y, stride_c, width, depth) for depth in range(max(most - BRICK, 0) + 1, most + 1))


def anchors(steps: Iterable[Stored], ends: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Addresses at which a tensor may begin: where steps begin to read or write, and inputs and outputs.

    :param ends: region and offset of inputs and outputs.
    """
    found: dict[int, set[int]] = {}
    for stored in steps:
        found.setdefault(stored.region, set()).add(stored.low)
        for item in stored.step.reads:
            found.setdefault(item.region, set()).add(item.start)
    for region, offset in ends:
        found.setdefault(region, set()).add(offset)
    return {region: sorted(starts) for region, starts in found.items()}


def held_after(memory: Memory, stored: Stored, catalogue: Catalogue) -> list[Placement]:
    """Placements that hold once a step has run, its own result among what they cover."""
    found = (candidate.placement for candidate in catalogue.placements(stored, 1.0))
    if stored.region <= CHAIN:
        values = stored.values.astype(f"<u{stored.size}").tobytes()
        return [placed for placed in found if placed.view.values.tobytes() == values]
    data = memory.region(stored.region).data
    return [placed for placed in found if placed.holds(data)]
