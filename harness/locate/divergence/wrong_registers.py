"""Steps with a mistaken register: unlike those of its siblings, or an address that no other step means.

Where one step reads elsewhere than another has written, moving either makes everything right. The
addresses of the other steps then speak for one of the two: they tend to begin where tensors do, and
tensors are aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.locate.divergence.guessing import moves_of_operands, moves_of_result, sibling_guesses
from harness.locate.divergence.trials import Found, Trials

_MOST_STEPS = 20
_ALIGNMENT = 16


@dataclass(frozen=True)
class WrongRegister:
    """A step whose register is to blame.

    :param other: a step with which it disagrees and that may be to blame instead.
    """

    found: Found
    other: Found | None = None


def wrong_register(trials: Trials, suspects: Sequence[int], placed: bool) -> WrongRegister | None:
    """The step with a mistaken register, if correcting one makes everything right.

    :param suspects: steps that may be to blame, the likeliest first.
    :param placed: whether the first suspect is known to write where it should.
    """
    trials.new_round()
    for index in suspects[:_MOST_STEPS]:
        guesses = sibling_guesses(trials.known, index)
        if placed and index == suspects[0]:
            guesses = (guess for guess in guesses if guess.move is None or guess.move.role != "OFM")
        unlike = trials.repairing(guesses)
        if unlike is not None:
            return WrongRegister(unlike)
    trials.new_round()
    writer = _writer(trials, suspects, placed)
    trials.new_round()
    reader = _reader(trials, suspects, writer)
    if writer is None or reader is None:
        one = writer or reader
        return None if one is None else WrongRegister(one)
    if _favour(trials, writer) > _favour(trials, reader):
        return WrongRegister(writer, reader)
    return WrongRegister(reader, writer)


def _writer(trials: Trials, suspects: Sequence[int], placed: bool) -> Found | None:
    """A step that should have written elsewhere.

    Most often nobody reads what it wrote, or it destroyed what somebody would have read.
    """
    owners, steps = trials.known.owners, trials.known.steps
    odd = owners.idle.keys() | owners.clobbers
    for anywhere in (True,) if placed else (True, False):
        for index in sorted(odd if anywhere else steps.keys() - odd):
            if index not in steps or steps[index].step.kind == "DMA_START" or (placed and index == suspects[0]):
                continue
            moved = trials.repairing(moves_of_result(trials.known, index, anywhere=anywhere))
            if moved is not None:
                return moved
    return None


def _reader(trials: Trials, suspects: Sequence[int], writer: Found | None) -> Found | None:
    """A step that should have read elsewhere: a suspect, one that reads a hole, or where the writer should write."""
    steps = trials.known.steps
    empty = [(region, start, end) for region, pairs in trials.known.owners.holes.items() for start, end in pairs]
    chosen = list(suspects)
    if writer is not None and writer.guess.move is not None:
        stored, by = steps[writer.step], writer.guess.move.by
        chosen += _reading(trials, [(stored.region, stored.low + by, stored.high + by)], writer.step)
    chosen += _reading(trials, empty, -1)
    for index in list(dict.fromkeys(chosen))[:_MOST_STEPS]:
        if writer is not None and index == writer.step:
            continue
        moved = trials.repairing(moves_of_operands(trials.known, index))
        if moved is not None:
            return moved
    return None


def _reading(trials: Trials, places: Sequence[tuple[int, int, int]], after: int) -> list[int]:
    """Steps that read any of these places: region, first address, address after the last."""
    return [
        index
        for index, stored in sorted(trials.known.steps.items())
        if index > after
        and any(
            item.region == region and item.start < end and start < item.end
            for item in stored.step.reads
            for region, start, end in places
        )
    ]


def _favour(trials: Trials, found: Found) -> int:
    """How much speaks for an address being wrong.

    Others begin where it should be and not where it is; it should be aligned and is not.
    """
    move, stored = found.guess.move, trials.known.steps[found.step]
    assert move is not None
    ranges = stored.step.writes if move.role == "OFM" else stored.step.reads
    mine = next(item for item in ranges if item.role == move.role)
    others = [
        item.start
        for other in trials.known.steps.values()
        if other is not stored
        for item in (*other.step.reads, *other.step.writes)
        if item.region == mine.region
    ]
    target = mine.start + move.by
    aligned = (mine.start % _ALIGNMENT != 0) - (target % _ALIGNMENT != 0)
    return others.count(target) - others.count(mine.start) + len(others) * aligned
