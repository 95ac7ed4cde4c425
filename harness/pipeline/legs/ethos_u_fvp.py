"""The whole program on Arm's FVP: the ``.pte`` as ExecuTorch's own runner executes it.

The FVP is proprietary and on few machines: ``harness.pipeline.fvp`` finds it and the runner, and where either
is missing, or was built for something else than the program, the leg is skipped with the reason.
Outputs come back as raw files and are read in the shape, dtype and dim order that the edge program
promises. Hard faults, error lines, exit statuses, time limits and bad output files are failures.

Every evaluation input is a start of its own, and all of them are run: oracles pair outputs with
inputs by position, so a leg may not return fewer. Upstream's runner up to 1.4.1 executes its inputs
once and exits; a newer one (August 2026) has ``--server_mode``, but an ELF does not tell whether it
knows the option, and older ones ignore unknown options, so it is not used. An input is only
started while a whole time limit is left of ``CASE_SECONDS``; a case that needs more is skipped, for
a slow machine is no defect.

Imports torch lazily; runs in worker processes only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.case.arrays import Array
from harness.case.sampling import EvaluationInput
from harness.case.target import Target, parse_target
from harness.compat.vela import VelaConfiguration, configuration_of, default_configuration
from harness.evidence.observation import ValueType
from harness.evidence.references import FVP
from harness.pipeline.fvp.boards import board_of
from harness.pipeline.fvp.command import command_line
from harness.pipeline.fvp.discovery import (
    FvpMissing,
    Runner,
    find_binary,
    find_runner,
    run_environment,
    time_limit,
    version_of,
)
from harness.pipeline.fvp.exchange import BadOutput, exchange_folder, read_outputs, write_inputs
from harness.pipeline.fvp.process import run
from harness.pipeline.fvp.verdict import FvpFailure, check_run
from harness.pipeline.legs import Leg, NotRunnable, Outputs

if TYPE_CHECKING:
    from harness.pipeline.lowering import Lowered

CASE_SECONDS = 110.0
"""Seconds that the runs of one case may take: a case is observed twice within the pool's 300 s."""


def missing(target: Target, environment: Mapping[str, str] | None = None) -> str | None:
    """What the FVP leg lacks for an Ethos-U target on this machine, or None.

    :raises BadInput: a variable of armdiff's own holds nonsense.
    """
    environment = os.environ if environment is None else environment
    time_limit(environment)
    try:
        _installation(default_configuration(target.name), environment)
    except FvpMissing as problem:
        return f"no FVP for {target.name}: {problem} ('armdiff doctor' has the steps)"
    return None


def _skip(target: Target) -> str | None:
    return missing(target) if target.ethos_u else f"{target.name} has no command stream"


def _installation(
    wanted: VelaConfiguration, environment: Mapping[str, str], *, portable: bool = False
) -> tuple[Path, Runner]:
    board = board_of(parse_target(wanted.target))
    binary = find_binary(board, environment)
    version_of(binary, environment)  # an FVP that does not start is as good as none
    return binary, find_runner(board, wanted, environment, Path.cwd(), portable=portable)


def _run(lowered: Lowered, inputs: Sequence[EvaluationInput]) -> Outputs:
    wanted = _compiled_for(lowered)
    try:
        binary, runner = _installation(wanted, os.environ, portable=bool(lowered.record.fallback))
    except FvpMissing as problem:
        raise NotRunnable(f"no FVP for {wanted.target}: {problem} ('armdiff doctor' has the steps)") from None
    takes, promises = program_types(lowered.edge_program)
    board, limit = board_of(parse_target(wanted.target)), time_limit(os.environ)
    results: list[tuple[Array, ...]] = []
    started = time.monotonic()
    with exchange_folder(lowered.record.program) as folder:
        command = command_line(board, binary, runner.elf, folder, wanted.target, len(takes), max(1, int(limit)))
        environment = run_environment(binary, os.environ)
        for item in inputs:
            if results and time.monotonic() - started + limit > CASE_SECONDS:
                raise NotRunnable(
                    f"the FVP needs more than {CASE_SECONDS:g} s for the inputs of a case (with a limit of {limit:g} s "
                    "each): give fewer inputs, or a lower ARMDIFF_FVP_TIME_LIMIT"
                )
            write_inputs(folder, item.arrays, takes)
            results.append(_run_once(command, limit, environment, folder, promises))
    return tuple(results)


def _run_once(
    command: Sequence[str], limit: float, environment: Mapping[str, str], folder: Path, promises: Sequence[ValueType]
) -> tuple[Array, ...]:
    status, output = run(command, limit, environment, folder, folder / "fvp.log")
    check_run(status, output, limit)
    try:
        return read_outputs(folder, promises)
    except BadOutput as problem:
        raise FvpFailure(str(problem), output) from None


def _compiled_for(lowered: Lowered) -> VelaConfiguration:
    modules = (getattr(lowered.edge_program.graph_module, item.name) for item in lowered.record.delegates)
    found = next((found for module in modules if (found := configuration_of(module)) is not None), None)
    if found is None:
        raise NotRunnable("the program has no Ethos-U delegate: nothing of it runs on the NPU")
    return found


def program_types(program: Any) -> tuple[list[ValueType], list[ValueType]]:
    """What a program takes and what it promises, in user order.

    :param program: an ``EdgeProgram``.
    :raises NotRunnable: something of it is no tensor, which has no file, or of a dtype that numpy lacks.
    """
    from harness.pipeline.edge_program import border_types

    taken, promised = border_types(program)
    return _exchangeable("input", taken), _exchangeable("output", promised)


def _exchangeable(side: str, types: Sequence[ValueType | None]) -> list[ValueType]:
    import numpy as np

    found = []
    for index, type_ in enumerate(types):
        if type_ is None:
            raise NotRunnable(f"{side} {index} is no tensor, and the FVP's runner exchanges tensors only")
        if type_.dtype not in np.sctypeDict:
            raise NotRunnable(f"{side} {index} is {type_.dtype}, which numpy does not have")
        found.append(type_)
    return found


LEG = Leg(FVP, 4, "Arm's FVP and a runner for the target", _skip, _run)
