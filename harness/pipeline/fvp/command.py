"""armdiff's own FVP command line.

Upstream's fixes the MAC count (u55-128, u65-256, u85-128) whatever the program was compiled for;
here it is the target's (``ethosu.num_macs``, for SSE-320 ``mps4_board.subsystem.ethosu.num_macs``).
Everything else is what ``runner_utils.py`` (``run_corstone``) passes, quotes included: they are part
of the argument, and the FVP takes them off. ``--fast`` is the NPU model's functional mode.

The FVP cuts a semihosting command line at 256 characters without a word, so names are short and
relative to the exchange folder, and a longer line is refused.
"""

from __future__ import annotations

from pathlib import Path

from harness.pipeline.fvp.boards import Board, macs_of
from harness.pipeline.legs import NotRunnable

LONGEST = 256
"""A semihosting command line must be shorter."""
PROGRAM, OUTPUT = "program.pte", "out"


def input_name(index: int) -> str:
    """File name of a program input in the exchange folder."""
    return f"i{index}.bin"


def output_name(index: int) -> str:
    """File name that the runner gives to a program output (``print_outputs``)."""
    return f"{OUTPUT}-{index}.bin"


def runner_line(inputs: int) -> str:
    """The runner's command line for a program with so many inputs.

    :raises NotRunnable: the runner cannot be called so.
    """
    if inputs == 0:
        raise NotRunnable("the program has no inputs, and the FVP's runner takes at least one")
    line = f"executor_runner -m {PROGRAM} -o {OUTPUT}" + "".join(f" -i {input_name(index)}" for index in range(inputs))
    if len(line) >= LONGEST:
        raise NotRunnable(
            f"the program has {inputs} inputs: its semihosting command line has {len(line)} characters, "
            f"and the FVP cuts it at {LONGEST}"
        )
    return line


def command_line(
    board: Board, binary: Path, elf: Path, folder: Path, target: str, inputs: int, seconds: int
) -> list[str]:
    """The arguments that run a program once.

    :param folder: the exchange folder.
    :param target: what the program was compiled for; its MAC count configures the NPU.
    :param inputs: number of program inputs.
    :param seconds: the FVP's own time limit.
    :raises NotRunnable: see ``runner_line``.
    """
    part = board.subsystem
    options = (
        f"{part}ethosu.num_macs={macs_of(target)}",
        *board.options,
        f"{part}cpu0.semihosting-enable=1",
        f"{part}cpu0.semihosting-stack_base=0",
        f"{part}cpu0.semihosting-heap_limit=0",
        f"{part}cpu0.semihosting-cwd={folder}",
        f"{part}ethosu.extra_args='--fast'",
        f"{part}cpu0.semihosting-cmd_line='{runner_line(inputs)}'",
    )
    return [
        str(binary),
        *(word for option in options for word in ("-C", option)),
        *("-a", str(elf)),
        *("--timelimit", str(seconds)),
    ]
