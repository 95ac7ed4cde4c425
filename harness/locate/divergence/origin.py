"""Name the first operation of a payload whose result is not what the TOSA graph says.

Steps that a TOSA tensor explains (``explaining``) are right. What is left, among the steps that the
wrong output elements depend on, is put to the test in the order of execution: a step is corrected
by a guess (``guessing``) and the rest of the stream runs. If now every output is right, on all draws,
the defect is in this step or in one that it depends on. From the first such step the search goes
back as long as a TOSA tensor in the place of an operand makes everything right too.

Two kinds of defect cannot always be told for certain. Vela's own intermediate values are in no TOSA
tensor; those that the origin depends on are named as an interval. And where a step reads elsewhere
than another has written, either of the two addresses may be the wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.artifacts.tosa import TosaBlock
from harness.case.arrays import Array
from harness.case.place import Fact
from harness.case.wording import counted_as
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import Ints
from harness.ethosu.commands import field_text
from harness.ethosu.disassembly import listing
from harness.ethosu.records import Step
from harness.locate.divergence.difference import signed
from harness.locate.divergence.explaining import Run, TooManyPlacements
from harness.locate.divergence.guessing import Guess, operand_guesses, value_guesses
from harness.locate.divergence.matching import Placement
from harness.locate.divergence.trials import Found, Trials
from harness.locate.divergence.wrong_registers import WrongRegister, wrong_register

_MOST_READERS = 20


@dataclass(frozen=True)
class Origin:
    """The first operation whose result differs from the TOSA tensor that belongs there.

    :param step: its index; None if no step could be told.
    :param operation: kind and mode, as "ELEMENTWISE SUB".
    :param offset: of its command in ``cmd_data``.
    :param tensor: the TOSA tensor that its result belongs to; empty if it is none.
    :param tosa_operator: what computes that tensor in the TOSA graph.
    :param elements: how many elements of its result are wrong.
    :param of: how many elements that tensor has, or the result.
    :param repair: what makes every output right, as "the values of t as its result" or "IFM_BASE moved by 16
        bytes"; empty if nothing does.
    :param earliest: the first step that may be to blame; ``step`` itself if the origin is certain.
    :param doubt: why it is not certain; empty if it is.
    :param draw: name of the inputs.
    :param listing: the disassembly around the command, or around the first that may be to blame.
    :param latest: the last step that may be to blame.
    :param facts: of the step, for its place (``step_facts``), with ``share`` (of the elements that are wrong) and
        ``repair`` (``values``, ``copy``, or the register that makes everything right).
    """

    step: int | None
    operation: str
    offset: int | None
    tensor: str
    tosa_operator: str
    elements: int
    of: int
    repair: str
    earliest: int | None
    doubt: str
    draw: str
    listing: tuple[str, ...] = ()
    latest: int | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.step is None:
            return f"origin unknown: {self.doubt}"
        what = f" ({self.tosa_operator} {self.tensor})" if self.tensor else ""
        text = f"step {self.step} {self.operation} at {self.offset:#06x}{what}: "
        share = f"{self.elements} of {counted_as(self.of, 'element')}"
        text += f"{share} are wrong on {self.draw}" if self.elements else "suspected"
        if self.repair:
            text += f"; everything is right with {self.repair}"
        return text + (f"; uncertain: {self.doubt}" if self.doubt else "")


def unknown_origin(doubt: str, draw: str) -> Origin:
    """Where no step can be named."""
    return Origin(None, "", None, "", "", 0, 0, "", None, doubt, draw)


def find_origin(block: TosaBlock, runs: Sequence[Run]) -> Origin:
    """The origin of a difference.

    :param runs: a draw that differs in the runs' output, and others to confirm what it shows.
    """
    try:
        trials = Trials(runs)
    except TooManyPlacements as error:
        return unknown_origin(str(error), runs[0].draw)
    known, roots = trials.known, _wrong_roots(trials)
    known.explained.difference_update(roots)
    found = _first(trials, roots, known.seen | known.copies)
    wrong = None if found is not None else wrong_register(trials, [], False)
    if found is None and wrong is None:
        found = _first(trials, roots, set())
    if found is not None:
        found = _traced_back(trials, found)
        wrong = wrong_register(trials, [found.step, *_before(trials, found.step)], found.guess.placement is not None)
    if wrong is not None:
        return _of_wrong_register(block, trials, wrong, found)
    if found is not None:
        return _named(block, trials, found)
    return _partial(block, trials, roots) or _unmatched(trials, _suspects(trials, roots))


def _wrong_roots(trials: Trials) -> set[int]:
    """Steps that wrote the elements of the output that are wrong; their places are noted as holes."""
    player, owners = trials.main.player, trials.known.owners
    outputs = player.outputs({})
    assert outputs is not None
    which = trials.main.output
    slot, got, wanted = player.program.payload.outputs[which], outputs[which], trials.main.wanted[which]
    places = slot.offset + slot.element_size * np.flatnonzero(signed(got).ravel() != signed(wanted).ravel())
    if len(places):
        owners.note_hole(slot.region, np.append(places, places + slot.element_size - 1))
    return owners.of(slot.region, places)


def _suspects(trials: Trials, roots: Iterable[int]) -> list[int]:
    """Steps without an explanation that these depend on, themselves included."""
    return sorted(trials.known.ancestors(roots, trials.known.explained.__contains__))


def _before(trials: Trials, index: int) -> list[int]:
    """Steps without an explanation that a step depends on."""
    return _suspects(trials, trials.known.steps[index].sources)


def _first(trials: Trials, roots: Iterable[int], quiet: set[int]) -> Found | None:
    """The earliest suspect whose correction makes the outputs right.

    :param quiet: steps that are not suspected for now.
    """
    trials.new_round()
    found: Found | None = None
    suspects = [index for index in _suspects(trials, roots) if index not in quiet]
    allowed = set(suspects)
    for index in suspects:
        if trials.exhausted or (found is not None and index >= found.step):
            break
        if index not in allowed or trials.known.steps[index].step.kind == "DMA_START":
            continue
        better = trials.repairing(value_guesses(trials.known, index))
        if better is not None and (found is None or better.step < found.step):
            found = better
            allowed = set(_suspects(trials, [found.step])) - quiet
    return found


def _traced_back(trials: Trials, found: Found) -> Found:
    """From a step that was wrong to the one that gave it a wrong operand, as far as that goes."""
    while True:
        trials.new_round()
        before = _giver(trials, found)
        if before is None:
            return found
        found = before


def _giver(trials: Trials, found: Found) -> Found | None:
    """The step that left a wrong operand for this one, or for Vela's own steps before it."""
    before = _before(trials, found.step)
    for reader in (found.step, *before[: -_MOST_READERS - 1 : -1]):
        if trials.exhausted:
            break
        memory = trials.main.player.before(reader).memory
        for guess, wrong in operand_guesses(trials.known, reader, memory):
            placement = guess.placement
            if placement is None or trials.repairing([guess]) is None:
                continue
            writers = _writers(trials, placement.region, wrong, reader)
            inside = [index for index in writers if _within(trials, index, placement)]
            given = trials.repairing([Guess(tuple(inside), placement)]) if inside else None
            if given is not None and given.step < found.step:
                return given
            trials.known.owners.note_hole(placement.region, wrong)
    return None


def _writers(trials: Trials, region: int, places: Ints, before: int) -> list[int]:
    """Steps that wrote these bytes last when a step began, in order."""
    left, found = places, []
    for index in sorted((index for index in trials.known.steps if index < before), reverse=True):
        stored = trials.known.steps[index]
        if stored.region != region or not len(left):
            continue
        mine = np.isin(left, stored.bytes)
        if mine.any():
            left = left[~mine]
            found.append(index)
    return sorted(found)


def _within(trials: Trials, index: int, placement: Placement) -> bool:
    stored = trials.known.steps[index]
    return stored.size == placement.view.size and stored.low >= placement.start and stored.high <= placement.end


def _of_wrong_register(block: TosaBlock, trials: Trials, wrong: WrongRegister, found: Found | None) -> Origin:
    step, doubt = wrong.found.step, ""
    earliest = latest = step
    if wrong.other is not None:
        earliest, latest = sorted((step, wrong.other.step))
        doubt = (
            f"steps {earliest} and {latest} disagree about an address; everything is right as well with "
            f"{wrong.other.guess} in step {wrong.other.step}"
        )
    shown = found if found is not None and found.step == step else wrong.found
    return _origin(block, trials, shown, earliest, doubt, latest, str(wrong.found.guess))


def _named(block: TosaBlock, trials: Trials, found: Found) -> Origin:
    before = _before(trials, found.step)
    doubt = ""
    if before:
        doubt = (
            f"no TOSA tensor shows what {_several(before)} should have computed, on which step {found.step} depends: "
            "the defect may be there"
        )
    return _origin(block, trials, found, before[0] if before else found.step, doubt)


def _partial(block: TosaBlock, trials: Trials, roots: Iterable[int]) -> Origin | None:
    """The first step whose correction mends a good part of the outputs: there is more than one defect."""
    trials.new_round()
    for index in _suspects(trials, roots):
        if trials.exhausted:
            break
        found = trials.improving(value_guesses(trials.known, index))
        if found is not None:
            doubt = "correcting this step leaves other elements wrong: there is more than one defect"
            return _origin(block, trials, found, min(index, found.step), doubt)
    return None


def _unmatched(trials: Trials, suspects: Sequence[int]) -> Origin:
    if not suspects:
        return unknown_origin("no step wrote the elements that differ", trials.main.draw)
    doubt = (
        f"correcting any one step does not make the outputs right; what {_several(suspects)} computed matches no "
        "TOSA tensor"
    )
    program = trials.main.player.program
    offset = trials.known.steps[suspects[0]].step.command.offset
    return replace(
        unknown_origin(doubt, trials.main.draw),
        earliest=suspects[0],
        latest=suspects[-1],
        listing=tuple(listing(program.payload, program.accelerator, around=offset)),
    )


def _origin(
    block: TosaBlock, trials: Trials, found: Found, earliest: int, doubt: str, latest: int = 0, repair: str = ""
) -> Origin:
    """:param repair: what makes everything right, if it is not the guess that was found."""
    stored, program = trials.known.steps[found.step], trials.main.player.program
    shown = _with_tensor(trials, found)
    tensor = trials.known.shown.get(found.step, "")
    if shown.guess.placement is not None:
        tensor = _unmade(block, trials, found.step, shown.guess.placement.view.tensor)
    command, producer = stored.step.command, block.producers.get(tensor)
    elements, of = shown.elements, block.tensors[tensor].elements if tensor else stored.values.size
    return Origin(
        step=stored.index,
        operation=operation_of(stored.step, program.accelerator),
        offset=command.offset,
        tensor=tensor,
        tosa_operator=producer.op if producer is not None else "input" if tensor in block.inputs else "",
        elements=elements,
        of=of,
        repair=repair or str(found.guess),
        earliest=earliest,
        doubt=doubt,
        draw=trials.main.draw,
        listing=tuple(listing(program.payload, program.accelerator, around=command.offset)),
        latest=max(stored.index, latest),
        facts={
            **step_facts(stored.step, program.accelerator),
            "share": round(elements / max(of, 1), 4),
            "tensor_elements": of,
            "repair": _repair_word(repair or str(found.guess)),
            "certain": int(not doubt),
        },
    )


def _unmade(block: TosaBlock, trials: Trials, step: int, tensor: str) -> str:
    """A tensor; or, where an earlier step has made it, a reduction of it that has the same values on every draw.

    A reduction over an axis of one element has the values of its operand. A step that gets them wrong although the
    operand is there already does not make the operand again.
    """
    made = {name for index, name in trials.known.shown.items() if index < step}
    while tensor in made:
        readers = [reader for reader in block.readers(tensor) if reader.op.startswith("REDUCE_")]
        following = [name for reader in readers for name in reader.outputs]
        if len(following) != 1 or not all(_alike(run.values, tensor, following[0]) for run in trials.runs):
            break
        tensor = following[0]
    return tensor


def _alike(values: Mapping[str, Array], one: str, other: str) -> bool:
    return one in values and other in values and np.array_equal(values[one].ravel(), values[other].ravel())


def operation_of(step: Step, accelerator: Accelerator) -> str:
    """Kind and mode of a step: ``POOL MAX``."""
    modes = [field_text(step.command.name, *item, accelerator) for item in step.command.fields.items()]
    return " ".join([step.kind, *modes])


def step_facts(step: Step, accelerator: Accelerator) -> dict[str, Fact]:
    """What the registers say of a step, for its place: ``operation`` (``POOL_MAX``), ``ofm`` (elements that it writes),
    ``ofm_rows``, ``ofm_columns``, ``ofm_depth``, ``blockdep``, ``pad`` and ``stride``; what no register says is absent.
    """
    numbers = {
        name: step.registers[register]["value"] + 1
        for name, register in (
            ("ofm_rows", "OFM_HEIGHT_M1"),
            ("ofm_columns", "OFM_WIDTH_M1"),
            ("ofm_depth", "OFM_DEPTH_M1"),
        )
        if "value" in step.registers.get(register, {})
    }
    facts: dict[str, Fact] = {
        "operation": operation_of(step, accelerator).replace(" ", "_"),
        "kind": step.kind,
        **numbers,
    }
    if len(numbers) == 3:
        facts["ofm"] = math.prod(numbers.values())
    if "value" in step.registers.get("BLOCKDEP", {}):
        facts["blockdep"] = step.registers["BLOCKDEP"]["value"]
    return facts


def _repair_word(repair: str) -> str:
    """``values``, ``copy``, or a register's name."""
    first = repair.split(" ", 1)[0]
    return {"the": "values", "a": "copy"}.get(first, first)


def _with_tensor(trials: Trials, found: Found) -> Found:
    """The same step corrected by the values of a tensor, if that makes everything right too."""
    if found.guess.placement is not None:
        return found
    trials.new_round()
    guesses = (guess for guess in value_guesses(trials.known, found.step) if guess.placement is not None)
    other = trials.repairing(guesses)
    return other if other is not None and other.step == found.step else found


def _several(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"{len(steps)} steps from {steps[0]} to {steps[-1]}"
