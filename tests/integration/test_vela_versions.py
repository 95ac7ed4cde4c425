"""Several Velas side by side: each is installed into the cache, and what changed between them is told."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.case.errors import CannotRun
from harness.cli.command import main
from harness.compat.velas import vela_folder
from harness.tosa.engine import Plan, run
from harness.tosa.program import Fill, Operator, Program, Tensor, encode
from harness.tosa.translating import from_flatbuffer
from harness.triage.corpus import default_corpus
from harness.triage.findings import Finding

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


def of_the_corpus(entry: str) -> Program:
    corpus = default_corpus()
    assert corpus is not None
    return from_flatbuffer((corpus / "found" / entry / "lowered_module_0.tosa").read_bytes())


def folder(version: str) -> Path | None:
    """Where a version lies."""
    try:
        return vela_folder(version)
    except CannotRun as error:
        pytest.skip(str(error))


def findings(program: Program, accelerator: str, version: str) -> tuple[Finding, ...]:
    """What a version gets wrong; an outcome other than clean or a finding fails."""
    plan = Plan(lambda block: (accelerator, [program]), most=1, vela=folder(version))
    [result] = [item for item in run(plan) if item.accelerator]
    assert result.outcome in ("clean", "finding"), result.why
    return result.findings


def kinds(found: tuple[Finding, ...]) -> set[str]:
    return {item.kind for item in found}


def test_a_strided_pointwise_convolution_of_two_batches_is_fixed_in_520():
    program = of_the_corpus("vela-batched-pointwise-conv-stride")
    assert "differs from the TOSA reference" in kinds(findings(program, "ethos-u55-128", "5.1.0"))
    assert findings(program, "ethos-u55-128", "5.2.0") == ()


@pytest.mark.parametrize("out_pad", [(1, 0, 0, 0), (0, 0, 1, 0)])
def test_520_leaves_output_unwritten_behind_a_leading_out_pad(out_pad: tuple[int, int, int, int]):
    program = transposed_convolution(out_pad)
    assert findings(program, "ethos-u55-128", "5.1.0") == ()
    assert "unwritten-output" in kinds(findings(program, "ethos-u55-128", "5.2.0"))


def test_500_sums_int16_on_ethos_u85_with_accumulators_of_48_bits():
    [finding] = findings(summed_int16(), "ethos-u85-256", "5.0.0")
    assert finding.kind == "register-limit"
    assert "REDUCE_SUM has accumulators of 48 bits" in finding.message
    assert findings(summed_int16(), "ethos-u85-256", "5.1.0") == ()


def test_the_verb_says_what_is_fixed_and_what_is_new(tmp_path):
    for version in ("5.0.0", "5.2.0"):
        folder(version)
    files = []
    for name, program in (("sum", summed_int16()), ("conv", of_the_corpus("vela-batched-pointwise-conv-stride"))):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_bytes(encode(program))
    words = ["vela", *map(str, files), "--accelerator", "ethos-u85-256", "--out", str(tmp_path), "--jobs", "1"]
    words += ["--vela", "5.2.0", "--vela", "5.0.0", "--json", str(tmp_path / "out.json")]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 1, answer.output
    assert "compiled with Vela 5.0.0, 5.2.0" in answer.stdout
    assert "fixed in 5.2.0: " in answer.stdout
    found = json.loads((tmp_path / "out.json").read_text())["findings"]
    [register] = [item for item in found if item["kind"] == "register-limit"]
    assert register["measured"]["velas"] == {"5.0.0": "yes", "5.2.0": "no"}
    assert register["measured"]["change"] == "fixed in 5.2.0"
