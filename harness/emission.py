"""Lower a case for its program alone: no leg runs and no oracle judges.

For commands that look at what was compiled, such as ``disasm``. The case is read, checked,
quantized and compiled as in any other run (``harness.lowering``), so that the program is the one
that a campaign would have judged. An upstream failure is one line with its stage here; running
the case tells more.

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.building import load_tensors
from harness.case import file_of, read_case
from harness.checking import retargeted
from harness.errors import BadInput
from harness.lowering import StageClock, compile_program, quantize
from harness.observation import headline
from harness.protocol import EmitTask, Emitted
from harness.running import failure_of


def emit_program(task: EmitTask, announce: Callable[[str], None]) -> Emitted:
    """Compile the case of a task.

    :param announce: called with each stage before it starts.
    :raises BadInput: the case cannot be read, or its recipe does not fit the target.
    """
    path = Path(task.case)
    case = read_case(path)
    if task.target is not None:
        try:
            case = retargeted(case, task.target)
        except BadInput as error:
            raise error.inside(task.case) from None
    tensors = load_tensors(case, file_of(path).parent)
    clock = StageClock(announce)
    try:
        return Emitted(program=compile_program(quantize(case, clock, tensors), clock).record.program)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - upstream's fault of any type
        failure = failure_of(error, clock.current)
        reason = headline(failure.message)[:200]
        return Emitted(problem=f"{task.case}: stage {failure.stage} fails with {failure.type}: {reason}")
