"""Lower a case for its program alone: no leg runs and no oracle judges.

For commands that look at what was compiled, such as ``disasm``. The case is read, checked,
quantized and compiled as in any other run (``harness.pipeline.lowering``), so that the program is the one
that a campaign would have judged. An upstream failure is one line with its stage here; running
the case tells more.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.case.building import load_tensors
from harness.case.case import Case
from harness.case.checking import retargeted
from harness.case.errors import BadInput
from harness.case.reading import file_of, read_case
from harness.evidence.observation import LoweringRecord, headline
from harness.pipeline.failures import failure_of
from harness.pipeline.lowering import StageClock, compile_program, quantize
from harness.triage.masking import masked
from harness.workers.protocol import EmitTask, Emitted, Masked, MaskTask


def emit_program(task: EmitTask, announce: Callable[[str], None]) -> Emitted:
    """Compile the case of a task.

    :param announce: called with each stage before it starts.
    :raises BadInput: the case cannot be read, or its recipe does not fit the target.
    """
    case = read_case(Path(task.case))
    if task.target is not None:
        try:
            case = retargeted(case, task.target)
        except BadInput as error:
            raise error.inside(task.case) from None
    record = _lowered(case, Path(task.case), announce)
    if isinstance(record, str):
        return Emitted(problem=record)
    return Emitted(program=record.program, tosa={item.name: item.tosa for item in record.delegates if item.tosa})


def mask_case(task: MaskTask, announce: Callable[[str], None]) -> Masked:
    """Compile the case of a task, and imagine bugs in it (``harness.triage.masking``).

    :raises BadInput: the case cannot be read.
    """
    case = read_case(Path(task.case))
    record = _lowered(case, Path(task.case), announce)
    return (
        Masked(problem=record) if isinstance(record, str) else Masked(counts=masked(case, record.delegates, task.known))
    )


def _lowered(case: Case, path: Path, announce: Callable[[str], None]) -> LoweringRecord | str:
    """What the compile of a case left, or why there is nothing, in one line."""
    clock = StageClock(announce)
    try:
        tensors = load_tensors(case, file_of(path).parent)
        return compile_program(quantize(case, clock, tensors), clock).record
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type
        failure = failure_of(error, clock.current)
        reason = headline(failure.message)[:200]
        return f"{path}: stage {failure.stage} fails with {failure.type}: {reason}"
