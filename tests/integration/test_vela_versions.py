"""Several Velas side by side: each is installed into the cache, and what changed between them is told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.case.errors import CannotRun
from harness.tosa.program import Fill, Operator, Program, Tensor, encode
from harness.tosa.translating import from_flatbuffer
from harness.triage.corpus import default_corpus

RESCALE = {"Scale32": True, "RoundingMode": 1, "PerChannel": False, "InputUnsigned": False, "OutputUnsigned": False}


def rescaled(value: str, result: Tensor, shift: int, zero: str) -> tuple[tuple[Tensor, ...], Operator]:
    """RESCALE by ``2 ** (30 - shift)`` without zero points; ``zero`` is the dtype of the value."""
    names = tuple(f"{result.name}.{part}" for part in ("multiplier", "shift", "zero", "zero out"))
    data = ((1 << 30,), (shift,), (0,), (0,))
    dtypes = ("INT32", "INT8", zero, result.dtype)
    constants = (Tensor(name, (1,), dtype, values) for name, dtype, values in zip(names, dtypes, data, strict=True))
    return (*constants, result), Operator("RESCALE", (value, *names), (result.name,), RESCALE)


def transposed_convolution(out_pad: tuple[int, int, int, int]) -> Program:
    """TRANSPOSE_CONV2D 3x3, stride 2, on 4x4."""
    shape = (1, 9 + sum(out_pad[:2]), 9 + sum(out_pad[2:]), 8)
    tensors, tail = rescaled("a", Tensor("y", shape, "INT8"), 39, "INT32")
    given = (
        Tensor("x", (1, 4, 4, 8), "INT8"),
        Tensor("w", (8, 3, 3, 8), "INT8", Fill("uniform", -127, 127, 1)),
        Tensor("b", (8,), "INT32", Fill("uniform", -100, 100, 2)),
        Tensor("z", (1,), "INT8", (0,)),
        Tensor("zw", (1,), "INT8", (0,)),
        Tensor("a", shape, "INT32"),
    )
    how = {"OutPad": out_pad, "Stride": (2, 2), "AccType": 5, "LocalBound": False}
    head = Operator("TRANSPOSE_CONV2D", ("x", "w", "b", "z", "zw"), ("a",), how)
    return Program((*given, *tensors), (head, tail), ("x",), ("y",))


def summed_int16() -> Program:
    """int16 brought to int32, summed over channels, and back."""
    before, first = rescaled("x", Tensor("wide", (1, 4, 4, 8), "INT32"), 30, "INT16")
    after, last = rescaled("sum", Tensor("y", (1, 4, 4, 1), "INT16"), 33, "INT32")
    given = (Tensor("x", (1, 4, 4, 8), "INT16"), Tensor("sum", (1, 4, 4, 1), "INT32"))
    middle = Operator("REDUCE_SUM", ("wide",), ("sum",), {"Axis": 3})
    return Program((*given, *before, *after), (first, middle, last), ("x",), ("y",))


def shifted() -> Program:
    """MUL with a shift of 32: Vela rounds twice, which no entry of the corpus has (ExecuTorch emits no such shift)."""
    tensors = tuple(Tensor(name, (1, 4, 4, 8), "INT32", span=(-(1 << 20), 1 << 20)) for name in ("x", "y"))
    result = Tensor("z", (1, 4, 4, 8), "INT32")
    shift = Tensor("s", (1,), "INT8", (32,))
    return Program((*tensors, shift, result), (Operator("MUL", ("x", "y", "s"), ("z",)),), ("x", "y"), ("z",))


def of_the_corpus(entry: str) -> Program:
    corpus = default_corpus()
    assert corpus is not None
    return from_flatbuffer((corpus / "found" / entry / "lowered_module_0.tosa").read_bytes())


def judged(
    folder: Path, programs: list[Program], accelerator: str, *versions: str, reports: bool = False
) -> tuple[str, list[dict[str, Any]]]:
    """What the verb prints and finds, in a process of its own: this one may have imported a Vela."""
    files = [folder / f"{number}.json" for number in range(len(programs))]
    for file, program in zip(files, programs, strict=True):
        file.write_bytes(encode(program))
    words = [*map(str, files), "--accelerator", accelerator, "--out", str(folder), "--jobs", "1"]
    words += [word for version in versions for word in ("--vela", version)]
    words += ["--no-minimize"] * (not reports)
    command = [sys.executable, "-m", "harness.cli", "vela", *words, "--json", str(folder / "out.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == CannotRun.exit_status:
        pytest.skip(done.stderr.strip())
    assert done.returncode in (0, 1), done.stderr
    data = json.loads((folder / "out.json").read_text())
    assert set(data["outcomes"]) <= {"clean", "finding"}
    return done.stdout, data["findings"]


def states(found: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Kind -> version -> yes or no."""
    return {item["kind"]: item["measured"]["velas"] for item in found}


def test_a_strided_pointwise_convolution_of_two_batches_is_fixed_in_520(tmp_path):
    program = of_the_corpus("vela-batched-pointwise-conv-stride")
    text, found = judged(tmp_path, [program], "ethos-u55-128", "5.2.0", "5.1.0")
    assert states(found)["differs from the TOSA reference"] == {"5.1.0": "yes", "5.2.0": "no"}
    assert "compiled with Vela 5.1.0, 5.2.0" in text
    assert "fixed in 5.2.0: " in text


def test_520_leaves_output_unwritten_behind_a_leading_out_pad(tmp_path):
    programs = [transposed_convolution(pad) for pad in ((1, 0, 0, 0), (0, 0, 1, 0))]
    _, found = judged(tmp_path, programs, "ethos-u55-128", "5.1.0", "5.2.0")
    unwritten = [item["measured"] for item in found if item["kind"] == "unwritten-output"]
    assert len(unwritten) == len(programs)
    assert {item["change"] for item in unwritten} == {"new in 5.2.0"}


def test_500_sums_int16_on_ethos_u85_with_accumulators_of_48_bits(tmp_path):
    _, found = judged(tmp_path, [summed_int16()], "ethos-u85-256", "5.0.0", "5.1.0")
    [finding] = found
    assert "REDUCE_SUM has accumulators of 48 bits" in finding["message"]
    assert states(found) == {"register-limit": {"5.0.0": "yes", "5.1.0": "no"}}


def test_a_report_for_the_tracker_has_what_the_tracker_asks_for_and_its_script_runs_alone(tmp_path):
    program = of_the_corpus("vela-batched-pointwise-conv-stride")
    text, found = judged(tmp_path, [summed_int16(), program], "ethos-u85-256", "5.0.0", reports=True)
    assert "compiled with Vela 5.0.0" in text
    assert any(item["kind"] == "register-limit" for item in found)
    [folder] = (tmp_path / "bugs").glob("*reducesum*")
    report = (folder / "REPORT.md").read_text()
    for wanted in (
        "| 5.0.0 | yes |",
        "vela --accelerator-config=ethos-u85-256 ",
        "v0: INT32 [1] = RESCALE(x0, ",
        "v1: INT32 [1] = REDUCE_SUM(v0)",
        "REDUCE_SUM has accumulators of 48 bits",
        "no hardware and no FVP",
        "It has int16 values.",
    ):
        assert wanted in report, wanted
    done = subprocess.run([sys.executable, "-I", "repro.py"], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 3, done.stdout + done.stderr  # the installed Vela makes another stream
    assert "Vela made another command stream" in done.stdout
    assert "TOSA reference model: TOSA_VALID" in done.stdout


def test_a_script_recognises_the_very_stream(tmp_path):
    _, found = judged(tmp_path, [shifted()], "ethos-u55-128", reports=True)
    [finding] = [item for item in found if item["oracle"] == "numeric"]
    assert finding["state"] == "new", finding["entry"]
    [folder] = (tmp_path / "bugs").iterdir()
    done = subprocess.run([sys.executable, "-I", "repro.py"], cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "The bug shows." in done.stdout
