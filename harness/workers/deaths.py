"""What a worker's death says: the ``crash`` finding of its case, or a problem in one line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from harness.case.reading import read_case
from harness.evidence.observation import CRASH, Failure, Observation
from harness.triage.buckets import NO_OUTPUT
from harness.triage.findings import Finding, finding_of
from harness.workers.frames import Question, named_by
from harness.workers.processes import HANG, KILLED, OUT_OF_MEMORY, Death
from harness.workers.protocol import CaptureTask

MOST_KILLS = 5
"""Times that a case is begun while workers are killed from outside."""
_DETAIL_LINES = 60
TIMEOUT = "Timeout ("
"""How faulthandler begins to say where a process is when its time is over."""
_REASONS = ("[Internal]", "what():", "Assertion", "FATAL", "rror:")
"""Marks of the line that says why, the most specific first."""
_SAYS_NOTHING = ("Info:", "WARNING: Different TOSA spec")
"""How lines begin that say nothing of a death: what Vela prints for information (``Info: Changing const_mem_area …``,
on Ethos-U85), and what the reference model prints of every file, in blocks, which may be an earlier case's.
"""
_SUMMARY_END = "Neural network macs"
"""How Vela's summary of a delegate ends: what stands up to there is of one that it had compiled."""

_MESSAGES = {
    HANG: "no answer within the time limit",
    OUT_OF_MEMORY: "the process grew beyond the memory limit",
    KILLED: f"the process was killed from outside, {MOST_KILLS} times",
}


def finding_of_death(path: str, death: Death) -> Finding:
    """The ``crash`` finding of a case whose worker died, under this machine's path of the case."""
    from harness.evidence.observation import oracles

    case = read_case(Path(path))
    detail = "\n".join(death.log.splitlines()[-_DETAIL_LINES:])
    [mismatch] = oracles()[CRASH].judge(Observation(case, failure=replace(failure_of_death(death), detail=detail)))
    return finding_of(mismatch, case, path, detail)


def failure_of_death(death: Death) -> Failure:
    """A death as the failure of its stage."""
    return Failure(death.stage, death.kind, _MESSAGES.get(death.kind) or reason_line(death.log))


def told(task: Question, death: Death) -> str:
    """A death in one line, where it is a problem and no finding."""
    told = f"the process ended with {death.kind} in stage {death.stage} ({reason_line(death.log)})"
    return f"{named_by(task)}: {told}; run it by itself to see why"


def late_capture(task: CaptureTask, log: str) -> str:
    """What there is to say of a file that took too long to capture, with its line if the traceback shows one."""
    lines = re.findall(rf'File "{re.escape(task.file)}", line (\d+)', log[log.rfind(TIMEOUT) :])
    at = f", line {lines[0]}" if lines else ""
    return (
        f"{task.file}{at}: is not captured after {task.seconds:g} s (the file, its forward and torch.export together); "
        "make it end, or give more --capture-time"
    )


def reason_line(log: str) -> str:
    """The line of native output that says why: a dying program prints a stack trace after it."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith(_SAYS_NOTHING)]
    ends = [place for place, line in enumerate(lines, 1) if line.startswith(_SUMMARY_END)]
    lines = lines[ends[-1] :] if ends else lines
    for pattern in _REASONS:
        for line in lines:
            if pattern in line:
                return line
    return lines[-1] if lines else NO_OUTPUT
