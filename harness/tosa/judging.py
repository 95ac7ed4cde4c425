"""One program on one accelerator: compile, run on the model and on the reference, and say what is wrong.

What is judged: outputs bit for bit on every set of inputs, everything that can be read from the stream, the payload's
tables against the TOSA graph, that a second compilation gives the same program for the NPU, and that Vela compiles what
its own list of supported operators promises (``harness.tosa.documented``). What the reference model calls unpredictable
or invalid is no finding and is counted; so is what Vela refuses beyond its list, and what the model does not implement.
A finding is judged twice, from a new compilation, the second time without the inputs on which a product of int32
numbers overflows; what shows only once is counted as unrepeated.

Native code that dies takes this process with it: ``harness.tosa.engine`` runs this in children and makes findings of
their deaths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.artifacts.tosa import decode_tosa
from harness.artifacts.vela import VelaPayload
from harness.case.errors import BadInput
from harness.case.wording import counted_as
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.equivalence import decoded_difference
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import DelegateRecord, Mismatch
from harness.locate.delegate_mismatches import VELA, stopped_stream, wrong_stream, wrong_values
from harness.locate.divergence import DelegateComparison, Draw, compare_delegate, examined, tensors_of_steps
from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer
from harness.tosa.compiling import VelaRefusal, compile_flatbuffer
from harness.tosa.documented import beyond
from harness.tosa.findings import refusal
from harness.tosa.inputs import draws
from harness.tosa.overflow import fitting_products
from harness.tosa.program import PROGRAM, Program
from harness.tosa.translating import to_flatbuffer

BY_CHANCE = "deterministic"
"""The oracle that two compilations are alike."""
Outcome = Literal["clean", "finding", "refused", "invalid", "unjudged", "unrepeated"]
Seconds = dict[str, float]
Compile = Callable[[bytes, str], VelaPayload]
Announce = Callable[..., None]
"""Called with a stage that begins, and with the program that it is about, if that is not the one that is judged."""


@dataclass(frozen=True)
class Judged:
    """What came of one program.

    :param outcome: ``refused`` by Vela beyond what it lists, ``invalid`` by the reference model, ``unjudged`` (the
        model does not implement something), ``unrepeated`` (what was wrong the first time was not the second time).
    :param why: in Vela's, the reference model's or the model's own words.
    :param refused_draws: sets of inputs on which the reference model called the result unpredictable.
    :param seconds: processor time by stage.
    :param program: the one that it is about, if that is not the one that was given.
    """

    outcome: Outcome
    why: str = ""
    mismatches: tuple[Mismatch, ...] = ()
    refused_draws: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    program: Program | None = None


def judge(
    program: Program,
    accelerator: str,
    seed: int = 0,
    *,
    compile_tosa: Compile = compile_flatbuffer,
    announce: Announce = lambda *_: None,
    placed: bool = True,
    vetted: bool = True,
    twice: bool = True,
    rounds: int = 1,
) -> Judged:
    """Judge one program.

    :param seed: of the inputs; ``rounds``: how many sets of each kind.
    :param placed: look for the operator that is wrong first, which takes long where no single one is.
    :param twice: compile everything twice and judge a finding twice. Without it a finding is a guess, and that two
        compilations differ is not seen: who searches has to ask again of what is kept.
    :param vetted: it is valid by construction; otherwise the reference model is asked before Vela, whose death of an
        invalid program says nothing.
    :param compile_tosa: Vela, or a stand-in that tests plant faults into.
    :param announce: called with the stage that begins (``vela``, ``reference``), before native code runs.
    """
    seconds: Seconds = {}
    with _timed(seconds, "write"):
        tosa = to_flatbuffer(program)
        sets = draws(program, seed, rounds)
    if not vetted and (why := _invalid(tosa, sets, announce, seconds)):
        return Judged("invalid", why, seconds=seconds)
    found = _once(tosa, accelerator, sets, compile_tosa, announce, seconds, twice=twice)
    if found.outcome == "refused":
        return replace(_against_the_list(program, accelerator, found.why), seconds=seconds)
    if found.outcome != "finding":
        return replace(found, seconds=seconds)
    with _timed(seconds, "again"):
        fitting = fitting_products(tosa, sets)
        if not twice and len(fitting) == len(sets):
            return replace(found, seconds=seconds)
        again = _once(tosa, accelerator, fitting or sets, compile_tosa, announce, {}, origin=placed)
    if len(fitting) < len(sets) and (not fitting or again.outcome == "clean"):
        return Judged("invalid", "a product of int32 numbers leaves 32 bits", seconds=seconds)
    kinds = {(item.oracle, item.kind) for item in again.mismatches}
    kept = tuple(
        item for item in again.mismatches if (item.oracle, item.kind) in {_kind(one) for one in found.mismatches}
    )
    if any(_kind(item) not in kinds for item in found.mismatches) and not kept:
        return replace(found, outcome="unrepeated", seconds=seconds)
    return Judged("finding", "", kept, found.refused_draws, seconds)


def _kind(mismatch: Mismatch) -> tuple[str, str]:
    return mismatch.oracle, mismatch.kind


def _once(
    tosa: bytes,
    accelerator: str,
    sets: Sequence[Draw],
    compile_tosa: Compile,
    announce: Announce,
    seconds: Seconds,
    *,
    origin: bool = False,
    twice: bool = True,
) -> Judged:
    """From a new compilation on."""
    announce("vela")
    try:
        with _timed(seconds, "vela"):
            payload = compile_tosa(tosa, accelerator)
            second = compile_tosa(tosa, accelerator) if twice else payload
    except VelaRefusal as error:
        announce("reference")
        return Judged(*_refused(tosa, sets, str(error), seconds))
    announce("reference")
    try:
        with _timed(seconds, "run"):
            comparison = compare_delegate(tosa, payload, accelerator, sets, origin=origin)
        seconds["reference"] = seconds.get("reference", 0.0) + comparison.reference_seconds
        seconds["run"] -= comparison.reference_seconds
    except BadInput as error:
        return Judged("finding", "", (_damaged(tosa, payload, error),))
    with _timed(seconds, "checks"):
        comparison = _checked(tosa, payload, accelerator, sets[0], comparison, placed=origin)
        unlike = "" if payload == second else decoded_difference(payload, second)
    return _concluded(tosa, comparison, unlike)


def _refused(tosa: bytes, sets: Sequence[Draw], words: str, seconds: Seconds) -> tuple[Outcome, str]:
    """A refusal counts only where the reference model takes the program."""
    try:
        with _timed(seconds, "run"):
            run_flatbuffer(tosa, sets[0].arrays)
    except (ReferenceModelError, ValueError) as error:
        return "invalid", str(error)
    return "refused", words


def _against_the_list(program: Program, accelerator: str, words: str) -> Judged:
    """A refusal is a finding where Vela's own list promises the program."""
    if limit := beyond(program, accelerator_named(accelerator).u85):
        return Judged("refused", f"{words} (beyond Vela's list, {limit})")
    return Judged("finding", "", (refusal(program, words),))


def _invalid(tosa: bytes, sets: Sequence[Draw], announce: Announce, seconds: Seconds) -> str:
    """Why the reference model takes none of the inputs; empty if it takes one."""
    announce("reference")
    why = ""
    for draw in sets:
        try:
            with _timed(seconds, "reference"):
                run_flatbuffer(tosa, draw.arrays)
        except ReferenceModelError as error:
            why = str(error)
            continue
        except ValueError as error:  # it does not accept the graph, whatever the inputs
            return str(error)
        return ""
    return why


def _checked(
    tosa: bytes, payload: VelaPayload, accelerator: str, draw: Draw, comparison: DelegateComparison, *, placed: bool
) -> DelegateComparison:
    found = examined(comparison, payload, accelerator_named(accelerator))
    if placed and any(issue.certain for issue in found.issues):
        return replace(found, tensors=tensors_of_steps(tosa, payload, accelerator, draw))
    return found


def _concluded(tosa: bytes, comparison: DelegateComparison, unlike: str) -> Judged:
    refused = len(comparison.refused)
    invalid = [text for text in comparison.refused if "Invalid" in text]
    if invalid:
        return Judged("invalid", invalid[0], refused_draws=refused)
    record = DelegateRecord(PROGRAM, VELA, tosa, b"", (), (), ())
    found = [*wrong_values(PROGRAM, comparison, record), *wrong_stream(PROGRAM, comparison, record)]
    found = [item for item in found if not item.information]
    if unlike:
        text = f"{PROGRAM}: the same TOSA compiled twice gives different payloads: {unlike}"
        found.append(Mismatch(BY_CHANCE, "payload differs", text, stage="vela", pass_name=VELA))
    if comparison.stopped and not comparison.unimplemented and not found:
        found.append(_stopped(tosa, comparison.stopped))
    if found:
        return Judged("finding", "", tuple(found), refused)
    if comparison.unimplemented:
        return Judged("unjudged", comparison.stopped or "", refused_draws=refused)
    if not comparison.compared:
        return Judged("invalid", next(iter(comparison.refused), ""), refused_draws=refused)
    return Judged("clean", "", refused_draws=refused)


def _damaged(tosa: bytes, payload: VelaPayload, error: BadInput) -> Mismatch:
    """Tables that do not fit the TOSA graph: as the ``buffers`` oracle says it."""
    block = decode_tosa(tosa).main
    for side, wanted, table in (
        ("input", block.inputs, payload.inputs),
        ("output", block.outputs, payload.outputs),
    ):
        if len(wanted) != len(table):
            return Mismatch(
                "buffers",
                f"{side} count",
                f"{PROGRAM}: its payload has {counted_as(len(table), side)}, the TOSA graph that Vela compiled "
                f"{len(wanted)} ({', '.join(wanted[:8])})",
                stage="vela",
                pass_name=VELA,
                measured={"seen": len(table), "expected": len(wanted)},
                place=tosa_place(block, wanted, {}),
            )
    return _stopped(tosa, str(error))


def _stopped(tosa: bytes, problem: str) -> Mismatch:
    """A stream that nothing can execute: its place is the program's outputs, since nothing says where it went wrong."""
    block = decode_tosa(tosa).main
    return replace(stopped_stream(PROGRAM, problem), place=tosa_place(block, block.outputs, {"told": 0}))


@contextmanager
def _timed(seconds: Seconds, stage: str) -> Iterator[None]:
    started = time.process_time()
    try:
        yield
    finally:
        seconds[stage] = seconds.get(stage, 0.0) + time.process_time() - started
