"""What armdiff's model of the Ethos-U returns where the reference model returned something else.

A repro script cannot execute a command stream. It leaves inputs with the outputs of the TOSA reference model
(``in_0``…, ``out_0``…) and what Vela made; here the stream is executed on these inputs, so that a report shows
both sides, and whoever has an FVP or hardware can feed it the same file.

Needs numpy only.
"""

from __future__ import annotations

import io

import numpy as np

from harness.artifacts.npz import decode_npz
from harness.artifacts.payload_io import payload_io
from harness.case.arrays import Array
from harness.case.errors import ArmdiffError
from harness.case.wording import counted_as
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.machine import execute
from harness.ethosu.records import StreamError
from harness.reports.bugs.verifying import IO_FILE, Verified

_FEW = 8
"""Wrong elements that are shown."""


def executed(verified: Verified, accelerator: str) -> str:
    """Lines that say what the command streams of a script return; empty if there are none."""
    lines = []
    for name, program in verified.programs.items():
        given, tosa = verified.files.get(f"{name}{IO_FILE}"), verified.files.get(f"{name}.tosa")
        if given is None or tosa is None:
            continue
        with np.load(io.BytesIO(given)) as values:
            inputs, expected = (_row(values, word) for word in ("in", "out"))
        try:
            actual = _outputs(tosa, program, inputs, accelerator)
        except (StreamError, ArmdiffError) as error:
            lines.append(f"{name}: the stream cannot be executed: {error}")
            continue
        lines += [compared(f"{name}, output {i}", *pair) for i, pair in enumerate(zip(expected, actual, strict=True))]
    return "\n".join(lines)


def _outputs(tosa: bytes, program: bytes, inputs: list[Array], accelerator: str) -> list[Array]:
    """What a stream returns, in the shapes and dtypes of the TOSA graph."""
    payload = decode_npz(program)
    io = payload_io(tosa, payload)
    execution = execute(payload, io.payload_inputs(inputs), accelerator_named(accelerator))
    if execution.outputs is None:
        assert execution.stopped is not None
        raise execution.stopped
    return io.tosa_outputs(execution.outputs)


def _row(values: np.lib.npyio.NpzFile, word: str) -> list[Array]:
    return [values[f"{word}_{i}"] for i in range(sum(name.startswith(f"{word}_") for name in values.files))]


def compared(what: str, expected: Array, actual: Array) -> str:
    """How many elements of an output are wrong, and the first of them with both values."""
    wrong = np.flatnonzero(expected.reshape(-1) != actual.reshape(-1))
    if not wrong.size:
        return f"{what}: right on these inputs"
    at = [tuple(map(int, np.unravel_index(index, expected.shape))) for index in wrong[:_FEW]]
    worst = np.abs(expected.astype(np.int64) - actual.astype(np.int64)).max()
    rows = [
        ["index", *("[" + ",".join(map(str, item)) + "]" for item in at)],
        ["expected", *(str(int(expected[item])) for item in at)],
        ["actual", *(str(int(actual[item])) for item in at)],
    ]
    width = max(len(cell) for row in rows for cell in row)
    table = ["  " + " ".join(f"{cell:>{width}}" for cell in row) for row in rows]
    share = f"{wrong.size} of {counted_as(expected.size, 'element')}"
    said = f"{what} {list(expected.shape)}: {share} {'is' if wrong.size == 1 else 'are'} wrong, by up to {worst}"
    return "\n".join([said, *table])
