"""From a finding to its smallest case, in a folder: what ``armdiff reduce`` and the end of ``fuzz`` do.

::

    FOLDER/reduction.json   the checkpoint (harness.campaign.reduction.search)
    FOLDER/cases/           every case that was tried
    FOLDER/case.json        the smallest one, with its tensors if it has any
    FOLDER/neighbour.json   the nearest one that runs clean

A finding whose case is a captured model keeps the user's weights: they lie in the tensor file beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.campaign.reduction.criterion import BucketJudge
from harness.campaign.reduction.harm import Harm, harm_of
from harness.campaign.reduction.search import Reduction, begin, reduce_case
from harness.campaign.run_folder import Minimized, cannot_write
from harness.case.case import Case, case_digest, encode_case
from harness.case.chains import operator_chain
from harness.case.errors import CannotRun
from harness.case.reading import file_of, read_case
from harness.pipeline.engines import EngineChoice
from harness.triage.buckets import final_key
from harness.triage.corpus import Entry, bugs_of
from harness.triage.findings import Finding
from harness.workers.pool import CaseRunner
from harness.workers.protocol import Task


@dataclass(frozen=True)
class Terms:
    """Under which conditions a finding is looked for.

    :param corpus: what is known; a new bug must not become a known one on the way.
    :param until: when to stop, as ``time.monotonic`` tells it.
    """

    corpus: Sequence[Entry] = ()
    corrections: tuple[str, ...] = ()
    engine: EngineChoice = "default"
    until: float | None = None


def minimize(
    finding: Finding,
    pool: CaseRunner,
    folder: Path,
    terms: Terms,
    report: Callable[[Reduction], None] = lambda _: None,
    *,
    harm: Harm | None = None,
) -> tuple[Minimized, Finding]:
    """Reduce a finding's case into ``folder``; goes on from the checkpoint that is there.

    Returns what became of it, and the worst finding of its cause that the smallest case shows: known if that is proved.
    While a case is cut nothing is proved, so that it may have become a known bug of the same bucket.

    :param harm: what the smaller cases have to keep; without it that is the finding's own.

    :raises CannotRun: the folder cannot be written.
    """
    file = Path(finding.case)
    case = read_case(file)
    beside = file_of(file).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _copy_tensors(case, beside, folder / "cases")
        checkpoint = folder / "reduction.json"
        reduction = begin(finding.bucket, case, checkpoint, harm or harm_of([finding]))
        judge = BucketJudge(
            finding, terms.corpus, pool, folder / "cases", terms.corrections, terms.engine, reduction.harm
        )
        if reduction.state == "stopped":
            reduce_case(reduction, judge, width=pool.jobs, until=terms.until, checkpoint=checkpoint, report=report)
        (folder / "case.json").write_bytes(encode_case(reduction.case))
        _copy_tensors(reduction.case, beside, folder)
        if reduction.neighbour is not None:
            (folder / "neighbour.json").write_bytes(encode_case(reduction.neighbour))
        if reduction.state != "lost" and case_digest(reduction.case) not in judge.found:
            judge([reduction.case])  # it was found in an earlier sitting
    except OSError as error:
        raise cannot_write(folder, error) from None
    shown = judge.found.get(case_digest(reduction.case))
    smallest = msgspec.structs.replace(shown or finding, case=str(folder / "case.json"))
    if shown is not None:
        smallest = _judged(smallest, pool, terms)
    made = Minimized(
        bucket=finding.bucket,
        final=final_key(finding.bucket, reduction.case.graph),
        origin=str(file),
        case=str(folder / "case.json"),
        operators=operator_chain(reduction.case.graph),
        state=reduction.state,
        tries=reduction.tries,
        seconds=round(reduction.seconds, 1),
        neighbour=str(folder / "neighbour.json") if reduction.neighbour is not None else None,
        distinguishes=reduction.distinguishes,
        finding=smallest if shown else None,
    )
    return made, smallest


def _judged(smallest: Finding, pool: CaseRunner, terms: Terms) -> Finding:
    """The finding of a smallest case in the state that a run with proofs gives it."""
    bugs = bugs_of(terms.corpus)
    if smallest.known or not bugs:
        return smallest
    task = Task(
        case=smallest.case, probes="all", ethos_u_engine=terms.engine, corrections=terms.corrections, known=bugs
    )
    [result] = pool.run([task])
    again = [item for item in result.findings if item.bucket == smallest.bucket]
    told = next((item for item in again if item.known), again[0] if again else smallest)
    return msgspec.structs.replace(smallest, state=told.state, entry=told.entry, proof=told.proof)


def _copy_tensors(case: Case, source: Path, folder: Path) -> None:
    """Put the tensor file that a case names beside where it is going to lie."""
    if case.tensors is None or (folder / case.tensors).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copyfile(source / case.tensors, folder / case.tensors)
    except FileNotFoundError:
        raise CannotRun(f"{source / case.tensors}: is missing; restore the file that belongs to the case") from None
