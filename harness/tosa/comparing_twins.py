"""A program and its twins: both are compiled and run on armdiff's model, and must return the same bits.

This comes behind ``judge``, for programs that are clean. Where the two differ, the twin is judged by itself: what is
wrong against the reference model is an ordinary finding, of the twin. Only what the reference model does not see is
told as a difference between twins. Either Vela is wrong on one of them and the reference model in the same way, or an
entry of ``harness.tosa.twins`` claims too much.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from harness.artifacts.payload_io import payload_io
from harness.artifacts.tosa import decode_tosa
from harness.case.arrays import Array
from harness.case.errors import ArmdiffError
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.machine import execute
from harness.ethosu.records import StreamError
from harness.evidence.inspection.surroundings import tosa_place
from harness.evidence.observation import Mismatch
from harness.locate.delegate_mismatches import VELA
from harness.locate.divergence import Draw
from harness.locate.divergence.difference import difference
from harness.tosa.compiling import VelaRefusal, compile_flatbuffer
from harness.tosa.findings import digest
from harness.tosa.inputs import draws
from harness.tosa.judging import Announce, Compile, Judged, judge
from harness.tosa.program import PROGRAM, Program, lines
from harness.tosa.translating import to_flatbuffer
from harness.tosa.twins import Twin, twins_of

KIND = "differs from its twin: "
"""How the kind of such a finding begins; the entry's name follows."""
ONE_IN = 4
"""One program in so many has a twin, and one of those that it could have."""
_DRAWS = 2
_ROUNDS = 4
"""Sets of inputs of each kind on which a program is judged that somebody asks about: a sum may saturate on most."""


def judge_with_twins(
    program: Program,
    accelerator: str,
    seed: int = 0,
    *,
    only: str = "",
    every: bool = False,
    compile_tosa: Compile = compile_flatbuffer,
    announce: Announce = lambda *_: None,
    placed: bool = True,
    vetted: bool = True,
    twice: bool = True,
) -> Judged:
    """Judge a program, and then some of its twins.

    :param only: the name of the one entry that counts; all operators that it fits are tried.
    :param every: all entries at all operators, and more inputs, for a program that somebody asks about: what is wrong
        with a twin alone is not told then. Without this and ``only`` the program's digest chooses.
    """
    found = judge(
        program,
        accelerator,
        seed,
        compile_tosa=compile_tosa,
        announce=announce,
        placed=placed,
        vetted=vetted,
        twice=twice,
        rounds=_ROUNDS if every else 1,
    )
    if found.outcome != "clean":
        return found
    started = time.process_time()
    chosen = _chosen(program, seed, only=only, every=every)
    sets = draws(program, seed)[:_DRAWS] if chosen else ()
    own = _returned(program, accelerator, sets, compile_tosa) if chosen else None
    for twin, place, turn in chosen:
        other = twin.of(program, place, turn)
        announce("vela", other)
        returned = _returned(other, accelerator, sets, compile_tosa)
        told = "" if own is None or returned is None else _told(own, returned, sets)
        if not told:
            continue
        by_itself = judge(other, accelerator, seed, compile_tosa=compile_tosa, placed=placed)
        if by_itself.outcome == "clean":
            return Judged("finding", "", (_mismatch(program, other, twin, place, told),), found.refused_draws)
        if not every:
            return replace(by_itself, program=other)
    spent = {"twins": time.process_time() - started}
    return replace(found, seconds={**found.seconds, **spent})


def _chosen(program: Program, seed: int, *, only: str, every: bool) -> list[tuple[Twin, int, int]]:
    """Entries, places and turns."""
    possible = list(twins_of(program))
    if only:
        return [(twin, place, seed + turn) for twin, place in possible if twin.name == only for turn in range(2)]
    number = int(digest(program), 16) + seed
    if every:
        return [(twin, place, number) for twin, place in possible]
    if not possible or number % ONE_IN:
        return []
    # an entry first: those that fit everywhere would leave the others out
    names = list(dict.fromkeys(twin.name for twin, _ in possible))
    name = names[number // ONE_IN % len(names)]
    fitting = [pair for pair in possible if pair[0].name == name]
    return [(*fitting[number // 64 % len(fitting)], number // 512)]


def _returned(
    program: Program, accelerator: str, sets: Sequence[Draw], compile_tosa: Compile
) -> list[list[Array]] | None:
    """Outputs on each set of inputs; None if there are none to compare."""
    tosa = to_flatbuffer(program)
    try:
        payload = compile_tosa(tosa, accelerator)
        io = payload_io(tosa, payload)
        found: list[list[Array]] = []
        for draw in sets:
            done = execute(payload, io.payload_inputs(draw.arrays), accelerator_named(accelerator))
            if done.outputs is None:
                return None
            found.append(io.tosa_outputs(done.outputs))
        return found
    except (VelaRefusal, ArmdiffError, StreamError):
        return None


def _told(own: Sequence[Sequence[Array]], other: Sequence[Sequence[Array]], sets: Sequence[Draw]) -> str:
    """What differs first; empty if nothing does."""
    for draw, ours, theirs in zip(sets, own, other, strict=True):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            if (found := difference(index, *pair, draw.name)) is not None:
                at, one, two = found.smallest_set[0]
                return (
                    f"{found.elements} of {found.of} elements of output {index} differ on {draw.name}, "
                    f"the first at {list(at)}: {one}, and {two}"
                )
    return ""


def _mismatch(program: Program, other: Program, twin: Twin, place: int, told: str) -> Mismatch:
    step = program.operators[place]
    block = decode_tosa(to_flatbuffer(program)).main
    return Mismatch(
        oracle="numeric",
        kind=f"{KIND}{twin.name}",
        pass_name=VELA,
        message=f"{PROGRAM}: {told} of its twin ({twin.name}, at {step.op}), which must return the same; the "
        "reference model agrees with both, so it is wrong on one of them as well",
        measured={"twin": twin.name},
        signature=step.op,
        detail="\n".join(["the twin:", *lines(other)]),
        place=tosa_place(block, step.outputs, {}),
    )
