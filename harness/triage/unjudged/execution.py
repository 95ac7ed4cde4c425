"""What was not judged because it did not run: failed compiles and legs, streams, and refused draws.

A leg that was left out on purpose, or has nothing to run on the target, is no matter of one case: the leg table
says so once. But where no leg at all executed a command stream (or VGF payload), nobody judged it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.case.case import Case
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.evidence.observation import Failure, Observation, Unjudged, headline
from harness.evidence.references import FVP, MODEL, VGF
from harness.pipeline.engines import NOT_ASKED

if TYPE_CHECKING:
    from harness.locate.divergence import DelegateComparison

OWN_FAULT = "armdiff failed"
FAILED = " failed"
"""Ends what names a compile or leg that failed: a crash, which is a finding."""
NOT_MODELLED = "not in the functional model"
CANNOT_RUN = "stream cannot be executed"
REFUSED = "refused draws"
NO_ENGINE = {True: "no leg ran the command stream", False: "no leg ran the VGF payload"}
"""By whether the target is an Ethos-U."""
LONGEST = 200


def of_failures(observation: Observation) -> Iterator[Unjudged]:
    """The compile that failed, or else each leg that did."""
    if observation.failure is not None:
        yield of_failure(observation.case, observation.failure)
        return
    for name, leg in observation.legs.items():
        if leg.failure is not None:
            yield of_failure(observation.case, leg.failure, name)
        elif leg.fault:
            yield Unjudged(what=OWN_FAULT, why=_line(leg.skipped or ""), leg=name, outputs=outputs_of(observation.case))


def of_failure(case: Case, failure: Failure, leg: str = "") -> Unjudged:
    """A case, or a leg of it, that ended with an exception or died."""
    return Unjudged(
        what=f"{leg or failure.stage}{FAILED}",
        why=_line(f"{failure.type}: {headline(failure.message)}"),
        leg=leg,
        outputs=outputs_of(case),
    )


def all_stopped(items: Sequence[Unjudged]) -> bool:
    """Whether nothing was unjudged of a case but what a failed compile or leg left without an answer."""
    failures = {item.what for item in items if item.what.endswith(FAILED) and item.what != OWN_FAULT}
    return bool(failures) and {item.what for item in items} <= failures | set(NO_ENGINE.values())


def of_streams(observation: Observation) -> Iterator[Unjudged]:
    """Command streams and VGF payloads that were not executed, or streams on fewer draws than were made."""
    compared: dict[str, DelegateComparison] | None = observation.probes.get("streams")
    outputs = outputs_of(observation.case)
    fvp = observation.legs.get(FVP)
    told = False
    for name, comparison in (compared or {}).items():
        if comparison.refused:
            yield Unjudged(
                what=REFUSED,
                why=_line(f"the TOSA reference gives no answer: {comparison.refused[0].partition(': ')[2]}"),
                leg=MODEL,
                outputs=outputs,
                parts=len(comparison.refused),
                of=len(comparison.refused) + comparison.compared,
                unit="draws",
            )
        reason = comparison.fault or comparison.stopped
        if reason and not (fvp is not None and fvp.ran):
            what = OWN_FAULT if comparison.fault else NOT_MODELLED if comparison.unimplemented else CANNOT_RUN
            told = True
            yield Unjudged(what=what, why=_line(f"{name}: {reason}"), leg=MODEL, outputs=outputs)
    target = parse_target(observation.case.target)
    engines = (MODEL, FVP) if target.ethos_u else (VGF,) if target.vgf else ()  # the model's own reason first
    legs = {name: leg for name in engines if (leg := observation.legs.get(name)) is not None}
    if told or observation.failure is not None or any(leg.ran for leg in legs.values()):
        return
    for name, leg in legs.items():  # a leg that failed, or at which armdiff did, is told by ``of_failures``
        if leg.skipped and not leg.fault and not leg.skipped.startswith(NOT_ASKED):
            yield Unjudged(what=NO_ENGINE[target.ethos_u], why=_line(leg.skipped), leg=name, outputs=outputs)
            return


def of_a_lost_case(path: str, failure: Failure) -> tuple[Unjudged, ...]:
    """A case whose process died: nothing of it was judged.

    :param path: of the case file; nothing is said of one that cannot be read, which is a problem of its own.
    """
    case = _read(path)
    return (of_failure(case, failure),) if case is not None else ()


def of_own_fault(path: str, fault: str) -> tuple[Unjudged, ...]:
    """A case at which armdiff failed, likewise."""
    case = _read(path)
    return (Unjudged(what=OWN_FAULT, why=_line(fault), outputs=outputs_of(case)),) if case is not None else ()


def _read(path: str) -> Case | None:
    try:
        return read_case(Path(path))
    except BadInput:
        return None


def outputs_of(case: Case) -> tuple[int, ...]:
    """Indices of a case's outputs."""
    return tuple(range(len(case.graph.outputs)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
