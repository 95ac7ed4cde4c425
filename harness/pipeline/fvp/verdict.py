"""What a run's exit status and output say: it worked, the program failed, or the runner is too small.

A line counts as a fault if it begins with ``E``/``F`` and a colon or space (log levels Error and
Fatal of ExecuTorch and of the driver), or has "Hard fault" or "Assertion" in it: the expression of
``runner_utils.py`` (``run_corstone``). ``run_fvp.sh`` knows two exceptions, which ``--fast`` causes,
and the FVP's own words for its time limit.

A kernel or a memory pool that the runner was built without is a property of the ELF, not of the
program: it ends in ``NotRunnable`` with the words to build it with, never in a finding.
"""

from __future__ import annotations

import re
import signal
from contextlib import suppress

from harness.pipeline.legs import NotRunnable

TAIL_LINES = 30
"""Last lines of output in a failure's detail."""
_FAULT = re.compile(r"^[EF][: ]|Hard fault|Assertion")
_GRAVE = re.compile(r"Hard fault|Assertion")
_HARMLESS = re.compile(
    r"Failed to initialize timing-adapter #\d+|Timing adapter has no effect if option --fast/-F is enabled"
)
_TIME_OVER = "CPU time has been exceeded"
_KERNEL = re.compile(r"Missing operator: \[\d+\] (\S+)")
_MEMORY = re.compile(
    r"Memory allocation failed|Failed to allocate (?:scratch buffer|input file)|Could not allocate memory for planned"
)


class FvpFailure(RuntimeError):
    """The FVP did not return the program's outputs: one line that says why, then the last lines of output."""

    def __init__(self, why: str, output: str) -> None:
        lines = [line.rstrip() for line in output.splitlines() if line.strip()]
        tail = "\n".join(lines[-TAIL_LINES:]) or "(no output)"
        super().__init__(f"{why}\nlast lines of the FVP's output:\n{tail}")


def fault_lines(output: str) -> list[str]:
    """Lines of a run's output that report a fault, the gravest first."""
    found = [line.strip() for line in output.splitlines() if _FAULT.search(line) and not _HARMLESS.search(line)]
    return sorted(found, key=lambda line: _GRAVE.search(line) is None)


def check_run(status: int | None, output: str, seconds: float) -> None:
    """Say nothing of a run that ended well.

    :param status: exit status; None: killed when ``seconds`` were over.
    :raises NotRunnable: the runner lacks a kernel or memory.
    :raises FvpFailure: hard fault, assertion, error line, time limit or exit status.
    """
    faults = fault_lines(output)
    if faults and not _GRAVE.search(faults[0]):
        _check_runner(output)
    if faults:
        raise FvpFailure(f"the program failed on the FVP: {faults[0]}", output)
    if status is None or _TIME_OVER in output:
        raise FvpFailure(f"the FVP gave no answer within its time limit of {seconds:g} s", output)
    if status != 0:
        raise FvpFailure(f"the FVP ended with {_named(status)}", output)


def _check_runner(output: str) -> None:
    kernels = sorted(set(_KERNEL.findall(output)))
    if kernels:
        raise NotRunnable(
            f"the FVP's runner has no kernel for {', '.join(kernels)}: build it with these in --select_ops_list"
        )
    line = next((line.strip() for line in output.splitlines() if _MEMORY.search(line)), None)
    if line is not None:
        raise NotRunnable(
            f"the memory pools of the FVP's runner are too small ({line[:160]}): build it with larger "
            "ET_ARM_BAREMETAL_…_POOL_SIZE in --extra_build_flags"
        )


def _named(status: int) -> str:
    if status < 0:
        with suppress(ValueError):
            return signal.Signals(-status).name
    return f"exit status {status}"
