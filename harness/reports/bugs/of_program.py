"""A folder for Vela's tracker, of a finding that the Vela engine made: the program, and nothing of ExecuTorch.

``program.tosa`` (and ``program.json``, armdiff's form), ``io.npz`` with inputs, the outputs that are right and those
of the stream, ``repro.py`` (ethos-u-vela, tosa-tools and numpy only), and ``REPORT.md`` as Vela's BUGS.md asks.

The stream is executed on armdiff's functional model of the Ethos-U. ``repro.py`` has no model: it says so, and tells
whether the Vela at hand makes the very stream that was executed.

Compiles in this process, which Vela may end (``harness.tosa.children``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.artifacts.payload_io import payload_io
from harness.artifacts.vela import VelaPayload
from harness.case.arrays import Array
from harness.case.errors import ArmdiffError
from harness.compat.releases import installed
from harness.compat.vela import default_configuration
from harness.compat.velas import use_vela
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.machine import execute
from harness.evidence.observation import CRASH
from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer
from harness.reports.bugs.executing import compared
from harness.reports.bugs.script import environment
from harness.tosa.causes import Cause
from harness.tosa.children import Children, Ended, Say, Work
from harness.tosa.compiling import compile_flatbuffer
from harness.tosa.findings import is_refusal
from harness.tosa.inputs import draws
from harness.tosa.program import Program, chain, encode, lines
from harness.tosa.translating import to_flatbuffer
from harness.triage.findings import Finding

PROGRAM, IO, REPORT = "program.tosa", "io.npz", "REPORT.md"
DRAWN = "Not known. The program was drawn from what TOSA allows and Vela documents, not found in a lowering."
GIVEN = "Not told. The program is a file that was given to armdiff."
MUTATED = "Not known. The program is a changed one of what was given to armdiff, not found in a lowering."
_SEEDS = 20


@dataclass(frozen=True)
class Executed:
    """A stream on the first inputs that show wrong values, or else on the first ones.

    :param actual: outputs of armdiff's model; empty if the stream stopped, for the reason in ``stopped``.
    """

    payload: VelaPayload
    inputs: Sequence[Array]
    expected: Sequence[Array]
    actual: Sequence[Array] = ()
    stopped: str = ""
    wrong: bool = field(default=False, compare=False)


def write_causes(
    causes: Sequence[Cause], velas: Mapping[str, Path | None], folder: Path, *, emitted: str
) -> Iterator[str]:
    """A folder for each cause; lines that say where.

    :param velas: the versions that were judged, with their folders. The newest that has a cause compiles its
        program, in a child.
    """
    for cause in causes:
        version = [name for name, state in cause.velas.items() if state == "yes"][-1]
        with Children() as children:
            children.start(_work(folder / cause.name, cause, velas[version], version, emitted))
            ended = "".join(event.how for event in children.events() if isinstance(event, Ended))
        where = folder / cause.name
        yield f"no report in {where}: the child ended with {ended}" if ended else f"report: {where / REPORT}"


def _work(folder: Path, cause: Cause, other: Path | None, version: str, emitted: str) -> Work:
    def work(say: Say) -> None:
        if other is not None:
            use_vela(other)
        write_program_bug(
            folder, cause.program, [cause.finding], vela=version, states=cause.velas, emitted=emitted, cause=cause
        )

    return work


def write_program_bug(
    folder: Path,
    program: Program,
    findings: Sequence[Finding],
    *,
    vela: str,
    states: Mapping[str, str] | None = None,
    emitted: str = DRAWN,
    cause: Cause | None = None,
) -> None:
    """Write the folder.

    :param findings: what was found in the program on one accelerator, the worst first.
    :param vela: version of the Vela that this process compiles with.
    :param states: versions -> ``yes``, ``no``, or why that cannot be told.
    :param emitted: whether ExecuTorch makes such a program.
    :param cause: what is told of the cause, if the program is a reduced one.
    """
    finding, tosa = findings[0], to_flatbuffer(program)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "program.json").write_bytes(encode(program))
    (folder / PROGRAM).write_bytes(tosa)
    done = None if finding.oracle == CRASH else executed_program(program, tosa, finding.target)
    if done is not None:
        np.savez(folder / IO, cmd_data=np.frombuffer(done.payload.commands, np.uint8), **_named(done))
    title = f"{' -> '.join(chain(program))} on {finding.target}: {_what(finding)}"
    context = {
        "title": title,
        "vela": vela,
        "tosa_tools": installed().get("tosa-tools", ""),
        "command": command_line(finding.target),
        "flags": json.dumps(command_line(finding.target).split()[1:-1]),
        "lines": "\n".join(lines(program)),
        "messages": [item.message for item in findings],
        "detail": next((item.detail.rstrip() for item in findings if item.detail), ""),
        "wanted": _wanted(program, finding),
        "executed": "" if done is None else _shown(done),
        "crash": finding.oracle == CRASH,
        "refused": is_refusal(finding),
        "states": states or {vela: "yes"},
        "emitted": emitted,
        "notes": [*_notes(program), *_reduction(cause)],
        "place": "" if finding.place is None else str(finding.place),
    }
    for template, name in (("program.py.jinja", "repro.py"), ("program.md.jinja", REPORT)):
        (folder / name).write_text(environment().get_template(template).render(context).rstrip() + "\n")


def command_line(accelerator: str) -> str:
    """Vela's command line, with what ExecuTorch uses for an accelerator."""
    words = default_configuration(accelerator)
    return (
        f"vela --accelerator-config={words.target} --config=Arm/vela.ini --system-config={words.system_config} "
        f"--memory-mode={words.memory_mode} --output-format=raw {PROGRAM}"
    )


def executed_program(program: Program, tosa: bytes, accelerator: str) -> Executed | None:
    """Compile, and execute on inputs until one shows wrong values; None if nothing can be executed."""
    payload = compile_flatbuffer(tosa, accelerator)
    try:
        io = payload_io(tosa, payload)
    except ArmdiffError:
        return None
    first: Executed | None = None
    for seed in range(_SEEDS):
        for draw in draws(program, seed):
            try:
                expected = run_flatbuffer(tosa, draw.arrays)
            except ReferenceModelError:
                continue  # what comes of these inputs is not defined
            execution = execute(payload, io.payload_inputs(list(draw.arrays)), accelerator_named(accelerator))
            if execution.outputs is None:
                return Executed(payload, draw.arrays, expected, stopped=str(execution.stopped))
            pairs = zip(io.tosa_outputs(execution.outputs), expected, strict=True)
            # the reference model's binding returns no 48-bit tensors: there is nothing to hold such an output against
            actual = [got if got.shape == wanted.shape else wanted for got, wanted in pairs]
            wrong = any((one != other).any() for one, other in zip(expected, actual, strict=True))
            found = Executed(payload, draw.arrays, expected, actual, wrong=wrong)
            if wrong:
                return found
            first = first or found
    return first


def _named(done: Executed) -> dict[str, Array]:
    rows = {"in": done.inputs, "expected": done.expected, "actual": done.actual}
    return {f"{word}_{place}": array for word, row in rows.items() for place, array in enumerate(row)}


def _shown(done: Executed) -> str:
    if done.stopped:
        return f"the stream cannot be executed: {done.stopped}"
    pairs = zip(done.expected, done.actual, strict=True)
    told = (
        compared(f"output {place}", *pair) if pair[0].size else f"output {place}: 48 bits, which nothing here compares"
        for place, pair in enumerate(pairs)
    )
    return "\n".join(told)


def _what(finding: Finding) -> str:
    return finding.kind if finding.oracle != CRASH else finding.message.partition(": ")[2] or finding.kind


def _wanted(program: Program, finding: Finding) -> str:
    """The line of the operator that the first wrong step belongs to, as the message names it."""
    named = re.search(r"which makes (\S+) \(", finding.message)
    return next((line for line in lines(program) if named and line.startswith(f"{named[1]}: ")), "")


def _notes(program: Program) -> list[str]:
    """What a maintainer would ask first."""
    found = []
    if rank := max((len(tensor.shape) for tensor in program.tensors if not tensor.constant), default=0):
        found += [f"The largest rank is {rank}."] if rank > 4 else []
    if any(tensor.dtype in ("INT16", "INT48") for tensor in program.tensors):
        found.append("It has int16 values.")
    return found


def _reduction(cause: Cause | None) -> list[str]:
    if cause is None:
        return []
    said = f"It is the smallest program that a reduction came to; it shows on {' and '.join(cause.families)}"
    return [f"{said}, of one accelerator a family. Fingerprint: `{cause.fingerprint}`."]
