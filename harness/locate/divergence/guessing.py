"""Guesses about what a step should have done, and the corrections that put them to the test.

A guess is one of: the step should have stored the values that a TOSA tensor has in that place (all
steps that write parts of the same tensor are corrected together); it should have copied its
operand; one of its operands should be elsewhere in memory; one of its registers should hold what a
sibling (a step of the same kind and size) has there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from harness.ethosu.arithmetic import Ints
from harness.ethosu.memory import Memory
from harness.ethosu.records import LUT, WEIGHTS
from harness.locate.divergence.explaining import ENOUGH_BITS, Explanation, Run
from harness.locate.divergence.matching import Candidate, Placement, view
from harness.locate.divergence.replaying import Correction, Fill, Move, Store, Write
from harness.locate.divergence.stored import CHAIN, Stored
from harness.locate.divergence.tracing import read_by

_MOST_PARTS, _MOST_PLACEMENTS = 40, 6
_MOST_TARGETS = 12
_BASE = re.compile(r"^(IFM2?|OFM)_BASE0$")
_VALUE = re.compile(r"ZERO_POINT|SCALE|SCALAR|ACTIVATION|PRECISION|BROADCAST|PAD|KERNEL|STRIDE")


@dataclass(frozen=True)
class Guess:
    """What some steps should have done.

    :param placement: the TOSA tensor that their results belong to; or, if they are ``readers``, that they read.
    :param move: of an operand of the one step.
    :param register: of the one step; with none of these, that step should have copied.
    """

    members: tuple[int, ...]
    placement: Placement | None = None
    move: Move | None = None
    register: Write | None = None
    readers: bool = False

    def __str__(self) -> str:
        if self.placement is not None:
            return f"the values of {self.placement.view.tensor} as its {'operand' if self.readers else 'result'}"
        if self.move is not None:
            return f"{self.move.role}_BASE moved by {self.move.by} bytes"
        if self.register is not None:
            return f"{self.register.name} of {', '.join(f'{k} {v}' for k, v in self.register.fields.items())}"
        return "a plain copy of its operand as its result"


def value_guesses(known: Explanation, index: int) -> Iterator[Guess]:
    """Values that a step may have been meant to store, the likeliest first.

    Tensors as large as its result by how like they are to it; tensors of which it is a part by how
    many elements of them are right already, with the other steps that write them, earlier ones included: of a
    matrix product by batches, those before the first wrong batch are what tells the tensor.
    """
    stored = known.steps[index]
    ranked = _ranked(known.catalogue.placements(stored, 0.0), stored)
    whole = [Guess(_members(known, item, stored), item) for item in ranked if _whole(item, stored)]
    parts = []
    for item in [item for item in ranked if not _whole(item, stored)][:_MOST_PARTS]:
        guess = Guess(_members(known, item, stored), item)
        written = [known.steps[index] for index in _writing(known, item, stored)]
        right = sum(part.values.size - wrong_elements(guess, part) for part in written)
        parts.append((right / item.view.values.size, guess))
    parts.sort(key=lambda part: part[0], reverse=True)
    yield from whole[:_MOST_PLACEMENTS]
    if stored.copied is not None:
        yield Guess((index,))
    yield from (guess for _, guess in parts[:_MOST_PLACEMENTS])


def operand_guesses(known: Explanation, index: int, memory: Memory) -> Iterator[tuple[Guess, Ints]]:
    """Tensors that a step may have been meant to read, where memory has something else; with the wrong addresses.

    An operand in whose place some tensor is complete is not guessed at.

    :param memory: before the step.
    """
    for role in ("IFM", "IFM2"):
        found = read_by(known.steps[index].step, role, memory)
        if found is None or found.region in (WEIGHTS, LUT) or not found.values.size:
            continue
        data = memory.region(found.region).data
        candidates = known.catalogue.placements(found, 0.0)
        exact = (item.placement for item in candidates if item.share == 1.0)
        if any(item.holds(data) and item.view.bits >= ENOUGH_BITS for item in exact):
            continue
        for placement in _ranked(candidates, found)[:_MOST_PLACEMENTS]:
            fill = _fill(placement)
            if int(fill.addresses.max()) >= len(data):
                continue
            wrong = fill.addresses[data[fill.addresses] != fill.data]
            if len(wrong):
                yield Guess((index,), placement, readers=True), wrong


def moves_of_result(known: Explanation, index: int, *, anywhere: bool) -> Iterator[Guess]:
    """Other places for a step's result: at a hole.

    :param anywhere: where later steps begin to read and beside other results, too.
    """
    stored = known.steps[index]
    extent = stored.high - stored.low
    pairs = known.owners.holes.get(stored.region, ())
    holes = {start for start, _ in pairs} | {end - extent for _, end in pairs}
    targets = set[int]()
    for other in known.steps.values() if anywhere else ():
        if other.index > index:
            targets.update(item.start for item in other.step.reads if item.region == stored.region)
        if other is not stored:
            written = (item for item in other.step.writes if item.region == stored.region)
            targets.update(place for item in written for place in (item.start, item.end))
    yield from _moves(stored, "OFM", stored.low, targets, holes)


def moves_of_operands(known: Explanation, index: int) -> Iterator[Guess]:
    """Other places for what a step reads: where bytes begin or end that nothing has read, and earlier results."""
    stored = known.steps[index]
    for role in ("IFM", "IFM2"):
        places = [item for item in stored.step.reads if item.role == role]
        if not places:
            continue
        start, extent = places[0].start, places[-1].end - places[0].start
        earlier = [other for other in known.steps.values() if other.index < index and other.region == places[0].region]
        idle = set[int]()
        for other in earlier:
            if lost := known.owners.idle.get(other.index):
                idle |= {other.low, min(lost), max(lost) + 1 - extent}
        yield from _moves(stored, role, start, {other.low for other in earlier}, idle)


def sibling_guesses(known: Explanation, index: int) -> Iterator[Guess]:
    """Registers as two steps of the same kind and size before or after have them, addresses extrapolated."""
    mine = known.steps[index].step
    kind = _kind(known.steps[index])
    like = [other for other, stored in sorted(known.steps.items()) if _kind(stored) == kind and other != index]
    before, after = [other for other in like if other < index][:-3:-1], [other for other in like if other > index][:2]
    seen = set[tuple[object, ...]]()
    for pair in (before, after):
        registers = [known.steps[other].step.registers for other in pair]
        for name, fields in registers[0].items() if registers else ():
            held = mine.registers.get(name)
            if not _BASE.search(name):
                if _VALUE.search(name) and held != fields and (key := (name, *fields.items())) not in seen:
                    seen.add(key)
                    yield Guess((index,), register=Write(name, fields))
            elif held is not None and len(pair) == 2 and name in registers[1]:
                by = 2 * fields["value"] - registers[1][name]["value"] - held["value"]
                if by and (name, by) not in seen:
                    seen.add((name, by))
                    yield Guess((index,), move=Move(name.split("_")[0], by))


def corrections(known: Explanation, guess: Guess, run: Run) -> dict[int, Correction]:
    """What a guess comes to on one draw."""
    if guess.move is not None:
        return {guess.members[0]: guess.move}
    if guess.register is not None:
        return {guess.members[0]: guess.register}
    if guess.placement is None:
        return {guess.members[0]: Store(_copy)}
    placement = _with_values(guess.placement, run)
    if guess.readers:
        return {guess.members[0]: _fill(placement)}
    return {index: _store(placement, known.steps[index]) for index in guess.members}


def wrong_elements(guess: Guess, stored: Stored) -> int:
    """How many elements a step stored otherwise than guessed."""
    if guess.move is not None or guess.register is not None:
        return stored.values.size
    if guess.placement is None:
        return int(np.count_nonzero(stored.values != stored.copied))
    expected, inside = guess.placement.expected(stored)
    return int(np.count_nonzero((expected != _unsigned(stored)) & inside))


def _kind(stored: Stored) -> tuple[object, ...]:
    return stored.step.kind, tuple(stored.step.command.fields.values()), stored.values.shape, stored.size


def _moves(stored: Stored, role: str, start: int, targets: set[int], first: set[int]) -> Iterator[Guess]:
    """:param first: the likeliest targets."""
    if stored.region <= CHAIN:
        return
    nearest = sorted((targets | first) - {start}, key=lambda target: (target not in first, abs(target - start)))
    yield from (Guess((stored.index,), move=Move(role, target - start)) for target in nearest[:_MOST_TARGETS])


def _members(known: Explanation, placement: Placement, first: Stored) -> tuple[int, ...]:
    """Steps from ``first`` on that write parts of one tensor, each a part of its own."""
    members = []
    taken = np.zeros(placement.end - placement.start, np.bool_)
    for index in _writing(known, placement, first):
        if index < first.index:
            continue
        place = known.steps[index].bytes - placement.start
        if taken[place].any():
            break
        taken[place] = True
        members.append(index)
    return tuple(members)


def _writing(known: Explanation, placement: Placement, like: Stored) -> Iterator[int]:
    """Steps that write into a tensor's place, as one of them does, in order."""
    for index, stored in sorted(known.steps.items()):
        same = (stored.region, stored.size, stored.strides) == (like.region, like.size, like.strides)
        if same and stored.low >= placement.start and stored.high <= placement.end:
            yield index


def _copy(values: Ints, copied: Ints | None) -> Ints:
    return values if copied is None or copied.shape != values.shape else copied


def _store(placement: Placement, stored: Stored) -> Store:
    expected, inside = placement.expected(stored)
    signed = expected.astype(f"<u{stored.size}").view(f"<i{stored.size}").astype(np.int64)
    return Store(lambda values, _: np.where(inside, signed, values) if values.shape == inside.shape else values)


def _fill(placement: Placement) -> Fill:
    size = placement.view.size
    places = placement.addresses[:, None] + np.arange(size)
    return Fill(placement.region, places.ravel(), placement.view.values.view(np.uint8))


def _whole(placement: Placement, stored: Stored) -> bool:
    return placement.view.values.size == stored.values.size and placement.start == stored.low


def _ranked(candidates: Sequence[Candidate], stored: Stored) -> list[Placement]:
    """Placements by how near they are to being right; larger tensors that are constant prove nothing."""

    def rank(item: Candidate) -> float:
        plain = 0.5 * (item.placement.view.kind == "converted")
        return item.share + item.likeness + _whole(item.placement, stored) + plain

    telling = (item for item in candidates if _whole(item.placement, stored) or not item.placement.view.constant)
    return [item.placement for item in sorted(telling, key=rank, reverse=True)]


def _unsigned(stored: Stored) -> Ints:
    return stored.values.astype(f"<u{stored.size}").astype(np.int64)


def _with_values(placement: Placement, run: Run) -> Placement:
    """The same placement with the values of another run."""
    old = placement.view
    new = view(old.tensor, run.values[old.tensor], old.size, old.kind)
    return Placement(new, placement.region, placement.start, placement.layout)
