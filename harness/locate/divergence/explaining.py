"""Which steps of a run a TOSA graph explains, and how sure that is.

A step is *explained* if a TOSA tensor that its result is part of is in memory completely, on every
draw, and has too much information in it for that to be chance; *seen* if there is such a tensor but
chance is possible (small tensors, saturated ones); a *copy* if it stored just what it read. DMA
counts as a copy. Nothing is said about the others: they may be Vela's own intermediates, or wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.case.arrays import Array
from harness.ethosu.memory import Memory
from harness.ethosu.records import LUT
from harness.locate.divergence.matching import Catalogue, anchors, held_after
from harness.locate.divergence.replaying import Player
from harness.locate.divergence.stored import Stored
from harness.locate.divergence.tracing import Owners, trace

ENOUGH_BITS = 20.0
MOST_PLACEMENTS = 20_000
"""Placements of one run that are looked at in memory. A stream of a thousand equal steps, each of which could be a part
of a tensor at each of a thousand addresses, has more than anybody would wait for."""
_Key = tuple[str, str, int, int, object, int]


@dataclass(frozen=True)
class Run:
    """One draw.

    :param player: the payload on this draw.
    :param wanted: the reference's outputs.
    :param values: all TOSA tensors that are known.
    :param output: the one output that is looked at; what becomes of the others does not count.
    :ivar looks: what one look showed, the same for every output: ``of_output`` shares it.
    """

    draw: str
    player: Player
    wanted: Sequence[Array]
    values: Mapping[str, Array]
    output: int = 0
    looks: list[tuple[_Pass, set[int]]] = field(default_factory=list, compare=False, repr=False)

    def of_output(self, output: int) -> Run:
        """The same draw, for another output."""
        return replace(self, output=output)


@dataclass(frozen=True)
class Explanation:
    """The steps that stored something in memory, and what is known about them.

    :param steps: by index; the others are waits and the like.
    :param owners: who wrote what last, at the end.
    :param shown: for explained steps, the tensor that they make: one that a step makes alone before one of which it
        makes a part (the operand of a CONCAT before its result), then the one with most information.
    """

    steps: Mapping[int, Stored]
    owners: Owners
    catalogue: Catalogue
    explained: set[int]
    seen: set[int]
    copies: set[int]
    shown: Mapping[int, str]

    def ancestors(self, roots: Iterable[int], stop: Callable[[int], bool] | None = None) -> set[int]:
        """Steps that these depend on, themselves included, but neither those where it stops nor beyond."""
        found: set[int] = set()
        left = list(roots)
        while left:
            index = left.pop()
            if index in found or index not in self.steps or (stop is not None and stop(index)):
                continue
            found.add(index)
            left.extend(self.steps[index].sources)
        return {index for index in found if self.steps[index].region != LUT}


@dataclass
class _Pass:
    """What one run shows.

    :param held: placements that held after some step, with their information and the steps that wrote them.
    """

    catalogue: Catalogue
    steps: dict[int, Stored]
    owners: Owners
    held: dict[_Key, tuple[float, set[int]]]


class TooManyPlacements(Exception):
    """A stream whose steps cannot be explained in reasonable time."""


def explain(runs: Sequence[Run]) -> Explanation:
    """Look at every run; the steps that are returned are those of the first.

    :raises TooManyPlacements: a run has more than ``MOST_PLACEMENTS``.
    """
    main, copies = _looked(runs[0])
    others = []
    for run in runs[1:]:
        other, also = _looked(run)
        others.append({key: bits for key, (bits, _) in other.held.items()})
        copies &= also
    explained, seen = set[int](), set[int]()
    best: dict[int, tuple[bool, float]] = {}
    shown: dict[int, str] = {}
    for key, (bits, covered) in main.held.items():
        if not all(key in held for held in others):
            continue
        total = bits + sum(held[key] for held in others)
        seen |= covered
        explained |= covered if total >= ENOUGH_BITS else set()
        for index in covered & main.steps.keys():
            alone = runs[0].values[key[0]].size == main.steps[index].values.size
            if total and (alone, total) > best.get(index, (False, 0.0)):  # of equals the first: it is made first
                best[index], shown[index] = (alone, total), key[0]
    shown = {index: tensor for index, tensor in shown.items() if index in explained}
    return Explanation(main.steps, main.owners, main.catalogue, explained, seen, copies, shown)


def _looked(run: Run) -> tuple[_Pass, set[int]]:
    """What one look at a run shows. Who gets it may note holes and take copies away."""
    if not run.looks:
        run.looks.append(_once(run))
    seen, copies = run.looks[0]
    holes = {region: set(found) for region, found in seen.owners.holes.items()}
    return replace(seen, owners=replace(seen.owners, holes=holes)), set(copies)


def _once(run: Run) -> tuple[_Pass, set[int]]:
    """One run, and the steps of it that are copies."""
    steps: dict[int, Stored] = {}
    owners: list[Owners] = [Owners()]

    def note(_: Memory, current: Owners, stored: Stored) -> None:
        steps[stored.index], owners[0] = stored, current

    trace(run.player, note)
    run.player.stored = steps
    payload = run.player.program.payload
    slots = ((slot.region, slot.offset) for slot in (*payload.inputs, *payload.outputs))
    catalogue = Catalogue(run.values, anchors(steps.values(), slots))
    held: dict[_Key, tuple[float, set[int]]] = {}

    memory, current = run.player.fresh().memory, Owners()
    for stored in steps.values():
        stored.put(memory)
        current.take(memory, stored)
        if stored.region == LUT:
            continue
        if catalogue.given > MOST_PLACEMENTS:
            raise TooManyPlacements(f"more than {MOST_PLACEMENTS} places fit the results of its {len(steps)} steps")
        for placed in held_after(memory, stored, catalogue):
            seen = placed.view
            key = (seen.tensor, seen.kind, placed.region, placed.start, placed.layout, stored.index)
            held[key] = seen.bits, current.of(placed.region, placed.addresses)
    copies = {index for index, stored in steps.items() if _copies(stored)}
    return _Pass(catalogue, steps, owners[0], held), copies


def _copies(stored: Stored) -> bool:
    if stored.step.kind == "DMA_START":
        return True
    return stored.copied is not None and np.array_equal(stored.copied, stored.values)
