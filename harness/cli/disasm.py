"""The verb ``disasm``: the command streams of a file as a listing (``harness.ethosu.disassembly``).

A file says by its first bytes what it is: an ExecuTorch program, whose Ethos-U delegates are
listed, Vela's raw ``.npz``, a delegate's payload by itself, or a case, which a worker lowers
first. The accelerator is the one that the stream was compiled for; with ``--target`` it must be
that one, except for a case, which is compiled for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness import __version__
from harness.artifacts import npz, program, vela
from harness.case.errors import ArmdiffError, BadInput
from harness.case.interrupts import deferred
from harness.case.reading import read_case
from harness.case.target import parse_target
from harness.cli.environment import need_environment
from harness.cli.options import correction_option, json_option
from harness.cli.results import write_json
from harness.workers.pool import Pool
from harness.workers.protocol import EmitTask

if TYPE_CHECKING:
    from harness.ethosu.accelerator import Accelerator
    from harness.ethosu.commands import DriverActions

BACKEND = "EthosUBackend"
_HOW = "give a .pte, a .npz of vela --output-format raw, or a case"


@dataclass(frozen=True)
class _Stream:
    """A payload of the file, and its number among them."""

    number: int
    payload: vela.VelaPayload


def read_ethos_u_target(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A target that has a command stream, or None."""
    if value is not None and not parse_target(value, "--target").ethos_u:
        raise BadInput("--target", f"{value} has no command stream", "use an Ethos-U target such as ethos-u55-128")
    return value


def read_offset(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """A byte offset, decimal or hexadecimal."""
    try:
        offset = None if value is None else int(value, 0)
    except ValueError:
        offset = -1
    if offset is not None and offset < 0:
        raise BadInput("--around", f"{value!r} is no offset", "write for example 0x120 or 288")
    return offset


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    metavar="TARGET",
    callback=read_ethos_u_target,
    help="The accelerator, e.g. ethos-u55-128. Default: the file's own.",
)
@click.option(
    "--delegate", type=click.IntRange(0), metavar="N", help="Only the Ethos-U delegate with this number, from 0."
)
@click.option("--around", callback=read_offset, metavar="OFFSET", help="Only the commands near this byte offset.")
@correction_option
@json_option
def disasm(
    file: Path,
    target: str | None,
    delegate: int | None,
    around: int | None,
    corrections: tuple[str, ...],
    json_file: str | None,
) -> None:
    """List the Ethos-U commands of a program, and what each operation does.

    FILE is a .pte, the .npz that vela --output-format raw writes, or a case (case.json or its folder), which is
    lowered first. Lines that begin with ';' say what the registers before them add up to.

    Example: armdiff disasm model.pte --delegate 0 --around 0x120
    """
    from harness.ethosu.disassembly import as_data, listing
    from harness.ethosu.records import StreamError

    streams = _streams(file, target, corrections)
    chosen = streams if delegate is None else [item for item in streams if item.number == delegate]
    if not chosen:
        raise BadInput("--delegate", f"{delegate} is not in {file}", f"use 0 to {len(streams) - 1}")
    if around is not None and len(chosen) > 1:
        raise BadInput("--around", f"needs one of the {len(chosen)} delegates of {file}", "choose it with --delegate")
    data = []
    for item in chosen:
        where = f"{file}, delegate {item.number}"
        actions, accelerator = _compiled_for(item.payload, target, where)
        end = actions.start + actions.length
        if around is not None and not actions.start <= around < end:
            raise BadInput("--around", f"{where} has no command there", f"use {actions.start:#x} to {end - 4:#x}")
        try:
            lines = list(listing(item.payload, accelerator, around=around)) if json_file != "-" else []
            if json_file is not None:
                data.append({"delegate": item.number, **as_data(item.payload, accelerator)})
        except StreamError as error:
            raise BadInput(where, str(error), "compile it again") from None
        if lines and len(chosen) > 1:
            lines = [f"delegate {item.number} of {len(streams)}", *lines, ""]
        for line in lines:
            click.echo(line)
    write_json(json_file, {"armdiff": __version__, "file": str(file), "delegates": data})


def _streams(file: Path, target: str | None, corrections: tuple[str, ...]) -> list[_Stream]:
    """Every command stream of a file or case.

    :raises BadInput: the file cannot be read, is none of the known kinds, or has no Ethos-U delegate.
    """
    if file.is_dir():
        return _of_program(_lowered(file, target, corrections), file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadInput(str(file), f"cannot be read ({error.strerror})", _HOW) from None
    try:
        if data[:4] == npz.MAGIC:
            return [_Stream(0, npz.decode_npz(data))]
        if data.startswith(vela.FIRST.encode()):
            return [_Stream(0, vela.decode_vela(data))]
    except BadInput as error:
        raise error.inside(str(file)) from None
    if data[4:8] == program.IDENTIFIER:
        return _of_program(data, file)
    if data.lstrip()[:1] == b"{":
        return _of_program(_lowered(file, target, corrections), file)
    raise BadInput(str(file), f"is no payload (it begins with {data[:8]!r})", _HOW)


def _of_program(data: bytes, file: Path) -> list[_Stream]:
    try:
        decoded = program.decode_program(data)
        delegates = [delegate for plan in decoded.plans for delegate in plan.delegates]
        found = [vela.decode_vela(item.payload, decoded.named) for item in delegates if item.backend == BACKEND]
    except BadInput as error:
        raise error.inside(str(file)) from None
    if not found:
        others = ", ".join(sorted({item.backend for item in delegates})) or "none at all"
        raise BadInput(str(file), f"has no Ethos-U delegate (delegates: {others})", "compile it for an Ethos-U target")
    return [_Stream(number, payload) for number, payload in enumerate(found)]


def _lowered(path: Path, target: str | None, corrections: tuple[str, ...]) -> bytes:
    """The program of a case."""
    case = read_case(path)
    if target is None and not parse_target(case.target).ethos_u:
        raise BadInput(
            str(path), f"is a case for {case.target}, which has no command stream", "give --target, e.g. ethos-u55-128"
        )
    need_environment()
    with deferred(), Pool(1) as pool:
        emitted = pool.emit(EmitTask(case=str(path), target=target, corrections=corrections))
    if emitted.problem is not None:
        raise ArmdiffError(emitted.problem)
    return emitted.program


def _compiled_for(payload: vela.VelaPayload, target: str | None, where: str) -> tuple[DriverActions, Accelerator]:
    """What the stream says of itself, and the accelerator to take it for.

    :raises BadInput: it cannot be read, or is for another accelerator than ``target``.
    """
    from harness.ethosu.accelerator import accelerator_named
    from harness.ethosu.commands import check_configuration, driver_actions
    from harness.ethosu.records import StreamError

    try:
        actions = driver_actions(payload.commands)
        accelerator = actions.accelerator if target is None else accelerator_named(target)
        check_configuration(actions, accelerator)
    except StreamError as error:
        remedy = "compile it again" if target is None else "leave out --target, or compile it for that target"
        raise BadInput(where, str(error), remedy) from None
    return actions, accelerator
