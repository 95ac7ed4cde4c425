"""``python -m tests.tflite``: TFLite networks on the Ethos-U model, against TFLite's reference kernels.

Each network is built with Keras, converted to int8, compiled by Vela for each accelerator into a raw ``.npz``, and run
on armdiff's model. The table says how many elements differ from TFLite's, and how many from the same network with
CONV_2D for FULLY_CONNECTED (``converting`` says why). Exit status 1 if anything differs that the second does not
explain, or if Vela leaves an operator to the CPU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # tensorflow reads it when it is imported

import numpy as np

from harness.artifacts.npz import decode_npz
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.checks.hazards import hazards
from harness.ethosu.machine import execute
from tests.tflite.converting import Array, answers, converted, inputs_of, operators, with_convolutions
from tests.tflite.networks import NETWORKS, built

TARGETS = "ethos-u55-128,ethos-u65-512,ethos-u85-256"


@dataclass(frozen=True)
class Subject:
    """A network with what TFLite makes of it."""

    name: str
    flatbuffer: bytes
    inputs: list[Array]
    wanted: list[Array]
    twice_rounded: list[Array]


def main() -> int:
    """Parse, convert, compile, compare, print."""
    options = _options()
    failed = 0
    for name in options.networks or NETWORKS:
        subject = _subject(name, options.inputs)
        codes, elements = len(np.unique(subject.wanted)), sum(item.size for item in subject.wanted)
        _say(f"{name}: {', '.join(operators(subject.flatbuffer))}; {elements} elements, {codes} codes")
        for target in options.targets.split(","):
            good, words = _judged(subject, target, options.vela, options.keep)
            failed += not good
            _say(f"  {target}: {words}")
    _say(f"{failed} not explained" if failed else "all exact, or explained by TFLite's FULLY_CONNECTED")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.tflite", description=__doc__)
    parser.add_argument("networks", nargs="*", help=f"some of {', '.join(NETWORKS)}; default: all")
    parser.add_argument("--targets", default=TARGETS, help="comma-separated")
    parser.add_argument("--inputs", type=int, default=16, help="inputs a network")
    parser.add_argument("--vela", type=Path, help="folder with another Vela (pip install --target)")
    parser.add_argument("--keep", type=Path, help="keep flatbuffers, payloads, inputs and outputs here")
    options = parser.parse_args()
    if unknown := set(options.networks) - set(NETWORKS):
        parser.error(f"unknown network {sorted(unknown)}; use some of {', '.join(NETWORKS)}")
    return options


def _subject(name: str, count: int) -> Subject:
    flatbuffer = converted(built(name), name)
    inputs = inputs_of(flatbuffer, count)
    return Subject(
        name, flatbuffer, inputs, answers(flatbuffer, inputs), answers(with_convolutions(flatbuffer), inputs)
    )


def _judged(subject: Subject, target: str, vela: Path | None, keep: Path | None) -> tuple[bool, str]:
    """Is the stream exact or explained, and what is to be said of it?"""
    with tempfile.TemporaryDirectory() as temporary:
        folder = (keep or Path(temporary)) / subject.name / target
        folder.mkdir(parents=True, exist_ok=True)
        payload, said = _compiled(subject.flatbuffer, target, folder, vela)
        if payload is None:
            return False, f"refused by Vela: {said}"
        accelerator, decoded = accelerator_named(target), decode_npz(payload)
        outputs: list[Array] = []
        issues: set[str] = set()
        for array, wanted in zip(subject.inputs, subject.wanted, strict=True):
            execution = execute(decoded, [array], accelerator)
            if execution.outputs is None:
                return False, f"the model stops: {execution.stopped}"
            outputs.append(execution.outputs[0].view(np.int8).reshape(wanted.shape))
            issues |= {item.kind for item in execution.issues if item.certain}
        issues |= {item.kind for item in hazards(execution.steps, accelerator) if item.certain}
        if keep:
            np.savez(folder / "calls.npz", inputs=subject.inputs, wanted=subject.wanted, outputs=outputs)
    return _verdict(np.array(outputs), np.array(subject.wanted), np.array(subject.twice_rounded), issues)


def _verdict(outputs: Array, wanted: Array, twice_rounded: Array, issues: set[str]) -> tuple[bool, str]:
    wrong, left = (int(np.count_nonzero(outputs != other)) for other in (wanted, twice_rounded))
    found = f"; stream issues: {', '.join(sorted(issues))}" if issues else ""
    if not wrong:
        return not issues, f"exact{found}"
    most = int(np.abs(outputs.astype(int) - wanted).max())
    words = f"{wrong} of {wanted.size} differ by up to {most}; {left} with CONV_2D for FULLY_CONNECTED"
    return not left and not issues, words + found


def _compiled(flatbuffer: bytes, target: str, folder: Path, vela: Path | None) -> tuple[bytes | None, str]:
    """Vela's raw output, or the end of what it said."""
    (folder / "net.tflite").write_bytes(flatbuffer)
    result = folder / "net_vela.npz"
    result.unlink(missing_ok=True)
    path = os.pathsep.join([*([str(vela)] if vela else []), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "ethosu.vela", f"--accelerator-config={target}", "--output-format=raw"]
    done = subprocess.run(
        [*command, f"--output-dir={folder}", str(folder / "net.tflite")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    if not result.exists():
        return None, " ".join((done.stdout + done.stderr).split())[-300:] or f"exit status {done.returncode}"
    return result.read_bytes(), ""


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
