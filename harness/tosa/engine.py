"""Many programs on many accelerators, in children; deaths of Vela become findings.

A *source* gives the programs of a numbered block, the same ones whenever it is asked. Child k of n takes blocks k,
k + n, k + 2n, … and says what it is about to do before native code runs. When one dies, the block is asked for again,
the program that it was at is tried alone in a new child, and if that dies in the same way it is a finding; the work
goes on behind it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness.compat.velas import use_vela
from harness.evidence.observation import CRASH
from harness.tosa.children import MEMORY, PATIENCE, Children, Ended, Said, Say
from harness.tosa.findings import death, finding_of
from harness.tosa.judging import Judged, Outcome, judge
from harness.tosa.program import Program
from harness.triage.findings import Finding

BLOCK = 20
"""Programs of a block."""
REFERENCE = "reference"
Source = Callable[[int], tuple[str, Sequence[Program]]]
"""Block number to an accelerator and the programs for it."""
Judge = Callable[..., Judged]


class Result(msgspec.Struct, frozen=True):
    """What came of one program.

    :param block: number of its block; ``place``: its place there.
    :param outcome: as ``Judged``; ``died`` if the reference model did.
    :param program: given with findings and with what Vela refuses.
    """

    block: int
    place: int
    accelerator: str
    operators: int
    outcome: Outcome
    why: str = ""
    refused_draws: int = 0
    seconds: dict[str, float] = {}
    findings: tuple[Finding, ...] = ()
    program: Program | None = None

    def without(self, oracle: str) -> str:
        """What it says of a finding of this oracle that it does not have: ``no``, or why that cannot be told."""
        if oracle != CRASH and any(item.oracle == CRASH for item in self.findings):
            return "refused"
        return "no" if self.outcome in ("clean", "finding") else self.outcome


class _At(msgspec.Struct, frozen=True, tag=True):
    """Said before something that can end the process; ``program`` is a twin, if it is about one."""

    block: int
    place: int
    stage: str
    program: Program | None = None


class _Done(msgspec.Struct, frozen=True, tag=True):
    result: Result


class _Drawn(msgspec.Struct, frozen=True, tag=True):
    """Processor time that a block took to draw."""

    seconds: float


_Message = _At | _Done | _Drawn
_MESSAGE: msgspec.json.Decoder[_Message] = msgspec.json.Decoder(_Message)


@dataclass(frozen=True)
class Plan:
    """What to run.

    :param most: programs at the most; None: until the time is over.
    :param until: ``time.monotonic()`` at which no further program begins.
    :param vela: a folder with another Vela than the installed one (``harness.compat.velas``); the caller has imported
        none then.
    """

    source: Source
    jobs: int = 1
    most: int | None = None
    until: float = float("inf")
    judge: Judge = judge
    patience: float = PATIENCE
    memory: int = MEMORY
    vela: Path | None = None


@dataclass(frozen=True)
class _Share:
    """A child's part of the work: blocks from one on, every so many, the first from a place on."""

    block: int
    step: int
    place: int = 0


def run(plan: Plan) -> Generator[Result]:
    """Results in the order in which they come."""
    running: dict[int, _Share] = {}
    at: dict[int, _At] = {}
    with Children(plan.patience, plan.memory) as children:
        for number in range(plan.jobs):
            share = _Share(number, plan.jobs)
            running[children.start(_work(plan, share))] = share
        for event in children.events():
            if isinstance(event, Said):
                message = _MESSAGE.decode(event.message)
                if isinstance(message, _At):
                    at[event.child] = message
                elif isinstance(message, _Done):
                    yield message.result
                else:
                    yield _drawn(message.seconds)
            elif event.how:
                share, seen = running.pop(event.child), at.get(event.child)
                if seen is None:
                    raise RuntimeError(f"a child of the Vela engine ended with {event.how} before its first program")
                yield _confirmed(plan, seen, event.how)
                following = _Share(seen.block, share.step, seen.place + 1)
                running[children.start(_work(plan, following))] = following


def _drawn(seconds: float) -> Result:
    """Drawing's time as a result without a program."""
    return Result(-1, -1, "", 0, "clean", seconds={"draw": seconds})


def _work(plan: Plan, share: _Share) -> Callable[[Say], None]:
    """What a child does: draw, judge, tell."""

    def work(say: Say) -> None:
        if plan.vela is not None:
            use_vela(plan.vela)
        block, first = share.block, share.place
        while time.monotonic() < plan.until and (plan.most is None or block * BLOCK < plan.most):
            started = time.process_time()
            accelerator, programs = plan.source(block)
            say(msgspec.json.encode(_Drawn(time.process_time() - started)))
            left = BLOCK if plan.most is None else min(BLOCK, plan.most - block * BLOCK)
            for place, program in enumerate(programs[:left]):
                if place < first or time.monotonic() >= plan.until:
                    continue
                say(msgspec.json.encode(_Done(_judged(plan, block, place, accelerator, program, say))))
            block, first = block + share.step, 0

    return work


def _judged(plan: Plan, block: int, place: int, accelerator: str, program: Program, say: Say) -> Result:
    last: list[Program | None] = [None]

    def announce(stage: str, other: Program | None = None) -> None:
        last[0] = other
        say(msgspec.json.encode(_At(block, place, stage, other)))

    announce("draw")
    try:
        found = plan.judge(program, accelerator, block, announce=announce)
    except MemoryError:
        about = last[0] or program
        found = Judged("finding", "", (death(about, "OutOfMemory"),), program=about)
    return _result(block, place, accelerator, program, found)


def _result(block: int, place: int, accelerator: str, program: Program, found: Judged) -> Result:
    about = found.program or program
    return Result(
        block,
        place,
        accelerator,
        len(program.operators),
        found.outcome,
        found.why,
        found.refused_draws,
        dict(found.seconds),
        tuple(finding_of(item, about, accelerator, "") for item in found.mismatches),
        about if found.outcome not in ("clean", "invalid") else None,
    )


def _confirmed(plan: Plan, seen: _At, how: str) -> Result:
    """A child's death: tried again alone. What Vela does again is a finding."""
    accelerator, programs = plan.source(seen.block)
    program = seen.program or programs[seen.place]
    alone = replace(plan, source=lambda _: (accelerator, [program]), jobs=1, most=1, until=float("inf"))
    last, ended = _At(0, 0, "draw"), ""
    with Children(plan.patience, plan.memory) as children:
        children.start(_work(alone, _Share(0, 1)))
        for event in children.events():
            if isinstance(event, Ended):
                ended = event.how
            elif isinstance(message := _MESSAGE.decode(event.message), _At):
                last = message
    if ended != how or last.stage != seen.stage:
        found = Judged(
            "unrepeated", f"a child ended with {how} during {seen.stage}, and alone with {ended or 'nothing'}"
        )
    elif seen.stage == REFERENCE:
        found = Judged("invalid", f"the reference model or armdiff's own model ended with {how}")
    else:
        found = Judged("finding", "", (death(program, how),))
    return _result(seen.block, seen.place, accelerator, program, found)
