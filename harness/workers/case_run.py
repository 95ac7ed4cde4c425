"""One task in a worker: run a case, run again what is not settled yet, and keep what shows twice.

The first run may take stages from the cache. What it finds is settled at once if it is known by a proof; anything
else has to show in a second run, which uses no cache: a finding caused by the cache is reported as unrepeated.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import torch

from harness.case.building import load_tensors
from harness.case.case import Case, case_digest
from harness.case.errors import ArmdiffError
from harness.case.memory import is_large
from harness.case.reading import file_of, read_case
from harness.compat.releases import arm_folder
from harness.compat.warm.collecting import between_runs
from harness.compat.warm.stage_cache import NO_CACHE, StageCache, WorkerCache
from harness.corrections import chosen
from harness.corrections.applying import applied
from harness.evidence.comparing import comparisons
from harness.evidence.observation import CRASH, Mismatch, Observation, oracle_named, oracles
from harness.evidence.references import EAGER, QUANTIZED, TOSA, reference_leg
from harness.locate import streams
from harness.pipeline.lowering import StageClock
from harness.pipeline.probes.results import Skipped
from harness.pipeline.profile import profile_of
from harness.tosa.smallest import of_vela, proved_by_reduction
from harness.triage.findings import DOMAINS, Finding, finding_of
from harness.triage.known import classified
from harness.triage.proving import Prover, Remembered, applicable_corrections, counts, same_finding
from harness.triage.unjudged import unjudged
from harness.workers.branches import is_measured, measured
from harness.workers.capture import checked_configure, load_file, on_tensors
from harness.workers.observing import InvalidCase, Options, examine
from harness.workers.protocol import AGAIN, CaseResult, Task, Tightness
from harness.workers.reached import Reached, watched

Seen = tuple[Observation, list[Mismatch]]


@dataclass(frozen=True)
class _Subject:
    """A task's case with all that its runs need.

    :param original: the user's own module, if the file that it is from has a ``configure`` for it: only the original
        has the names of the user's submodules.
    :param begins: told each run of the case after the first.
    """

    task: Task
    case: Case
    clock: StageClock
    options: Options
    original: torch.nn.Module | None = None
    begins: Callable[[str], None] = lambda name: None

    def run(self, stages: StageCache = NO_CACHE, *, blame: bool = True) -> Seen:
        """Run the case once."""
        torch.compiler.reset()  # upstream's tracing caches must not carry over from another case
        between_runs(everything=is_large(self.case))
        model = copy.deepcopy(self.original)
        return examine(self.case, self.clock, replace(self.options, model=model, blame=blame, stages=stages))

    def described(self, observation: Observation, mismatches: Sequence[Mismatch]) -> list[Finding]:
        """Mismatches as findings, known where a condition proves it."""
        found = [finding_of(item, self.case, self.task.case, _detail(item, observation)) for item in mismatches]
        return [classified(item, self.task.known) for item in found]

    def corrected(self, names: tuple[str, ...], reached: Reached, first: Observation) -> list[Finding] | None:
        """What the case shows with corrections; None if it cannot be tried with them.

        :param reached: what the first run came to.
        :param first: what it saw. A probe that has nothing to say with corrections does not show that a bug is gone.
        """
        self.begins(f"with {'correction' if len(names) == 1 else f'{len(names)} corrections'} {', '.join(names)}")
        try:
            with self.clock.stage("prove"), applied(chosen(names)):
                seen = self.run(reached.stages(names), blame=False)
        except (InvalidCase, ArmdiffError):  # for example, a correction's file is not on this machine
            return None
        observation, mismatches = seen
        for oracle in _spoke(first) - _spoke(observation):
            mismatches += oracles()[oracle].judge(first)
        return self.described(observation, mismatches)


def run_task(
    task: Task,
    announce: Callable[[str], None],
    cache: WorkerCache | None = None,
    remembered: Remembered | None = None,
    begins: Callable[[str], None] = lambda name: None,
) -> CaseResult:
    """Run one case, re-run it if something was found that is not settled yet, and keep what shows twice.

    :param cache: has what the graph's case before this one left. A run whose branches are measured takes nothing.
    :param remembered: what was proved on the graph's other targets.
    :param begins: told each run of the case after the first.
    """
    subject = replace(_subject(task, announce), begins=begins)
    case, measuring = subject.case, task.probes == "default" and is_measured(subject.case, task.corrections)
    first = None
    if cache is not None and task.user_file is None and case.tensors is None:
        first = cache.stages(case, takes=not measuring, corrections=task.corrections)
    try:
        with ExitStack() as stack:
            taken = stack.enter_context(measured(arm_folder())) if measuring else []
            watching = bool(task.known) and not measuring and not task.corrections
            reached = stack.enter_context(watched(first)) if watching else Reached()
            seen = subject.run(first or NO_CACHE)
    except InvalidCase as error:
        return CaseResult(case=task.case, target=case.target, invalid=str(error))
    stock, result, first_run = subject.described(*seen), _result(subject, *seen), seen[0]
    if is_large(case):
        first_run = _without_traces(first_run)
    del seen
    confirmed, unrepeated = _confirmed(subject, stock, first_run, remembered or Remembered(), reached)
    return msgspec.structs.replace(
        result,
        findings=confirmed,
        unrepeated=unrepeated,
        branches=taken[0] if taken else None,
        seconds=dict(subject.clock.seconds),
        proofs=round(subject.clock.processor.get("prove", 0.0), 3),
    )


def _without_traces(observation: Observation) -> Observation:
    """What later runs are held against: of a network, what its passes did is a hundred MiB more."""
    delegates = tuple(replace(item, trace=None) for item in observation.lowering.delegates)
    return replace(observation, lowering=replace(observation.lowering, delegates=delegates))


def _subject(task: Task, announce: Callable[[str], None]) -> _Subject:
    path = Path(task.case)
    case = read_case(path)
    configure, original = None, None
    if task.user_file is not None:
        names = load_file(Path(task.user_file))
        if names.get("configure") is not None:
            configure = checked_configure(Path(task.user_file), names["configure"])
            original = on_tensors(names["model"], names["calibration"][0])
    options = Options(
        tensors=load_tensors(case, file_of(path).parent),
        only_legs=task.legs or None,
        engine=task.ethos_u_engine,
        configure=configure,
        probes=task.probes,
    )
    return _Subject(task, case, StageClock(announce), options, original)


def _confirmed(
    subject: _Subject, stock: list[Finding], first: Observation, remembered: Remembered, reached: Reached
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings that are settled or show twice, and those that a second run does not repeat.

    :param stock: what the first run showed.
    """
    task, case = subject.task, subject.case
    graph = case_digest(msgspec.structs.replace(case, target=""))
    prover = Prover(
        task.known,
        applicable_corrections(task.corrections, task.known),
        lambda names: subject.corrected(names, reached, first),
        stock,
        remembered.of(graph),
        reached.comes_to,
    )
    settled = [_settled(item, task, prover) for item in stock]
    confirmed = [item for item in settled if item is not None]
    waiting = [item for item, done in zip(stock, settled, strict=True) if done is None]
    unrepeated: list[Finding] = []
    if waiting:
        subject.begins(AGAIN)
    second = subject.described(*subject.run()) if waiting else []
    for item in waiting:
        shown = [other for other in second if same_finding(item, other)]
        if shown:  # what was made without the cache speaks
            confirmed.append(prover.unlike_any(shown[0]) if counts(shown[0]) else shown[0])
        else:
            unrepeated.append(item)
    return tuple(_reduced(subject, confirmed, first)), tuple(unrepeated)


def _spoke(observation: Observation) -> set[str]:
    """Oracles whose probe of the same name had something to say."""
    return {name for name, said in observation.probes.items() if name in oracles() and not isinstance(said, Skipped)}


MOST_REDUCED = 2
"""Findings of one case that a reduction may prove."""


def _reduced(subject: _Subject, findings: Sequence[Finding], observation: Observation) -> Iterator[Finding]:
    """A finding of Vela's is known if its smallest TOSA program is a known bug's."""
    files = {f"{item.name}.tosa": item.tosa for item in observation.lowering.delegates if item.tosa}
    left = MOST_REDUCED if subject.task.confirm else 0
    for item in findings:
        if left and counts(item) and of_vela(item):
            left -= 1
            subject.begins("reduced")
            with subject.clock.stage("prove"):
                item = proved_by_reduction(item, files, subject.task.known)
        yield item


def _result(subject: _Subject, observation: Observation, mismatches: Sequence[Mismatch]) -> CaseResult:
    """What is told of the first run beside its findings."""
    task, record = subject.task, observation.lowering
    return CaseResult(
        case=task.case,
        target=subject.case.target,
        problem="; ".join(f"{task.case}: {text}" for text in _faults(observation)) or None,
        legs={name: leg.skipped or ("failed" if leg.failure else "ran") for name, leg in observation.legs.items()},
        delegates=len(record.delegates),
        delegated=tuple(
            name
            for delegate in record.delegates
            for name in delegate.operators
            if not name.startswith("quantized_decomposed.")
        ),
        fallback=record.fallback,
        tightness=_tightness(observation, task.plant),
        unjudged=unjudged(observation, mismatches),
        profile=profile_of(observation) if task.profile else None,
    )


def _settled(finding: Finding, task: Task, prover: Prover) -> Finding | None:
    """The finding in its last state, or None if a second run has to show it first."""
    if finding.information or finding.known or not task.confirm:
        return finding
    proved = prover.resembling(finding)
    if proved.known:
        return proved
    told = finding.bucket in task.confirmed and not oracle_named(finding.oracle).values
    return prover.unlike_any(proved) if told else None


def _detail(mismatch: Mismatch, observation: Observation) -> str:
    """For a crash: what PT2E had decided by then, and the failure's own words."""
    failure = observation.failure or next((leg.failure for leg in observation.legs.values() if leg.failure), None)
    if failure is None or mismatch.oracle != CRASH:
        return ""
    domains = observation.lowering.domains.items()
    told = "; ".join(f"{name} scale={domain.scale!r} zp={domain.zero_point}" for name, domain in domains)
    return f"{DOMAINS}{told}\n{failure.detail}"


def _faults(observation: Observation) -> list[str]:
    """What armdiff itself failed at, each once."""
    compared = observation.probes.get(streams.NAME, {}).values()
    told = [leg.skipped for leg in observation.legs.values() if leg.fault and leg.skipped]
    return list(dict.fromkeys([item.fault for item in compared if item.fault] + told))


def _tightness(observation: Observation, plant: bool) -> Tightness | None:
    """How sharp the comparison was, and whether a planted error would have been seen."""
    leg = observation.legs.get(TOSA)
    if observation.failure or leg is None or not leg.ran or observation.rounding is None:
        return None
    rows = list(comparisons(observation, TOSA))
    return Tightness(
        bound=max((row.bound for row in rows if row.item.in_range), default=0.0),
        caught=_plant(observation) if plant else None,
    )


def _plant(observation: Observation) -> bool | None:
    """Move one element of the reference model's first calibrated output by two steps; is it seen?

    The element is the one in the middle; the direction is the one that stays inside the codes.
    """
    domain = observation.lowering.outputs[0].domain if observation.lowering.outputs else None
    reference = observation.legs[reference_leg(observation)].outputs
    if not reference or not reference[0]:
        return None
    wanted = reference[0][0]
    if wanted.dtype.kind != "f" or wanted.size == 0:
        return None
    planted = wanted.copy()
    at = wanted.size // 2
    step = domain.scale if domain else max(float(abs(wanted).max()), 1e-30) * 2.0**-7
    top = (domain.qmax - domain.zero_point) * domain.scale if domain else float("inf")
    planted.flat[at] += 2 * step if float(wanted.flat[at]) + 2 * step <= top * (1 + 1e-6) else -2 * step
    runs = list(reference)
    runs[0] = (planted, *runs[0][1:])
    leg = replace(observation.legs[TOSA], outputs=tuple(runs))
    others = {name: observation.legs[name] for name in (EAGER, QUANTIZED)}  # an engine would see any error
    altered = replace(observation, legs={**others, TOSA: leg})
    return bool(oracles()["numeric"].judge(altered))
