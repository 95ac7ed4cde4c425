"""What armdiff's model of the Ethos-U returns where the reference model returned something else.

A repro script cannot execute a command stream. It leaves inputs with the outputs of the TOSA reference model
(``in_0``…, ``out_0``…) and what Vela made; here the stream is executed on these inputs, so that a report shows
both sides, and whoever has an FVP or hardware can feed it the same file.

Needs numpy only.
"""

from __future__ import annotations

import io

import numpy as np

from harness.bugs.verifying import IO_FILE, Verified
from harness.distributions import Array
from harness.errors import ArmdiffError
from harness.ethosu import StreamError, run

_FEW = 16


def executed(verified: Verified, accelerator: str) -> str:
    """Lines that say what the command streams of a script return; empty if there are none."""
    lines = []
    for name, program in verified.programs.items():
        given = verified.files.get(f"{name}{IO_FILE}")
        if given is None:
            continue
        with np.load(io.BytesIO(given)) as values, np.load(io.BytesIO(program)) as payload:
            inputs, expected = (_row(values, word) for word in ("in", "out"))
            try:
                actual = run(dict(payload), inputs, accelerator)
            except (StreamError, ArmdiffError) as error:
                lines.append(f"{name}: the stream cannot be executed: {error}")
                continue
        lines += [_compared(f"{name}, output {i}", *pair) for i, pair in enumerate(zip(expected, actual, strict=False))]
    return "\n".join(lines)


def _row(values: np.lib.npyio.NpzFile, word: str) -> list[Array]:
    return [values[f"{word}_{i}"] for i in range(sum(name.startswith(f"{word}_") for name in values.files))]


def _compared(what: str, expected: Array, actual: Array) -> str:
    if expected.size != actual.size:
        return f"{what}: {actual.size} elements, expected {expected.size}"
    wrong = np.flatnonzero(expected.reshape(-1) != actual.reshape(-1))
    if not wrong.size:
        return f"{what}: right on these inputs"
    at = wrong[:_FEW]
    return (
        f"{what}: {wrong.size} of {expected.size} elements are wrong; flat index {at.tolist()}: "
        f"expected {expected.reshape(-1)[at].tolist()}, actual {actual.reshape(-1)[at].tolist()}"
    )
