"""``reduce`` with a checkpoint, and a project's own tests, as users start them but for the start."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from click.testing import Result

from harness.case.case import Case, Distribution, Graph, Input, Node, encode_case
from harness.case.reading import read_case
from harness.tosa.judging import judge
from harness.tosa.program import decode
from harness.triage.corpus import default_corpus
from tests.forked import in_fork

UNIFORM = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})


@pytest.fixture(scope="module")
def long_way_round(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case whose neg loses its scale (corpus entry neg-ignores-scale), with two operators that do not matter."""
    nodes = (
        Node(name="n0", operator="sigmoid", inputs=("x",)),
        Node(name="n1", operator="neg", inputs=("n0",)),
        Node(name="n2", operator="tanh", inputs=("y",)),
    )
    graph = Graph(inputs=(Input(name="x", shape=(2,)), Input(name="y", shape=(1,))), nodes=nodes, outputs=("n1", "n2"))
    folder = tmp_path_factory.mktemp("case")
    (folder / "case.json").write_bytes(encode_case(Case(graph=graph, calibration={"x": UNIFORM, "y": UNIFORM})))
    return folder


def test_reduce_keeps_what_the_bucket_needs_and_goes_on_from_its_checkpoint(
    long_way_round: Path, workers_forked: None, command_here: Callable[..., Result]
) -> None:
    """The second sitting knows what lies in the folder, and nothing else of the first."""
    words = ("reduce", "case.json", "--out", "small", "--jobs", "1", "--json", "made.json")
    first = command_here(*words, "--time", "1s", cwd=long_way_round)
    assert first.exit_code == 0, first.output
    before = json.loads((long_way_round / "made.json").read_text())
    assert before["state"] == "stopped"

    second = command_here(*words, "--time", "5m", cwd=long_way_round)
    assert second.exit_code == 0, second.output
    made = json.loads((long_way_round / "made.json").read_text())
    assert (made["state"], made["bucket"]) == ("minimized", before["bucket"])
    assert made["tries"] > before["tries"], "it went on, and did not begin again"
    case = read_case(long_way_round / made["case"])
    assert {node.operator for node in case.graph.nodes} >= {"neg"}
    assert len(case.graph.nodes) <= 2
    assert made["finding"]["bucket"] == made["bucket"]
    assert "    known: neg-ignores-scale, " in second.output, "the smallest case is judged with proofs"


def test_reduce_shows_the_smallest_tosa_program_of_a_bug_of_vela(
    tmp_path: Path, armdiff_here: Callable[..., Result]
) -> None:
    """The program is written beside the case, and told with the command that judges it again."""
    folder = default_corpus() / "found" / "vela-u85-amax-padded"
    told = armdiff_here("reduce", str(folder), "--out", "small", "--jobs", "1", "--time", "1s", cwd=tmp_path)
    assert told.exit_code == 0, told.output
    lines = told.output.splitlines()
    at = lines.index("    the smallest TOSA program that shows it:")
    assert any(line.startswith("    known: vela-u85-amax-padded, ") for line in lines[:at])
    assert any("REDUCE_MAX(x0)" in line for line in lines[at:])
    [again] = [line for line in lines[at:] if line.startswith("    again: armdiff vela ")]
    file, accelerator = again.split()[3], again.split()[-1]
    program = decode((tmp_path / file).read_bytes())
    assert program.ops == ("REDUCE_MAX", "PAD")
    assert (tmp_path / file).with_suffix(".tosa").exists()
    assert judge(program, accelerator).outcome == "finding"


PROJECT = """
import torch

CALIBRATION = [(torch.rand(1, 4),), (torch.rand(1, 4),)]

class Negated(torch.nn.Module):
    def forward(self, x):
        return torch.neg(torch.sigmoid(x))

def test_healthy(armdiff_check):
    armdiff_check(torch.nn.Sigmoid(), CALIBRATION)

def test_wrong(armdiff_check):
    armdiff_check(Negated(), CALIBRATION)

class Broken(torch.nn.Module):
    def forward(self, x):
        raise ValueError("forgot the weights")

def test_wrong_and_allowed(armdiff_check):
    armdiff_check(Negated(), CALIBRATION, allow_known=True)

def test_raises(armdiff_check):
    armdiff_check(Broken(), CALIBRATION)
"""


def test_a_project_s_tests_check_its_models(tmp_path: Path, asking_here: None) -> None:
    """In a fork, which has imported what pytest and a worker would."""
    (tmp_path / "test_project.py").write_text(PROJECT)
    words = ("-v", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "harness.cli.pytest_plugin", ".")

    def run() -> bytes:
        os.chdir(tmp_path)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        with redirect_stdout(io.StringIO()) as printed:
            pytest.main(list(words))
        return printed.getvalue().encode()

    made = in_fork(run)
    assert made is not None
    out = made.decode()
    assert "test_healthy PASSED" in out, out
    assert "test_wrong FAILED" in out
    assert "test_raises FAILED" in out
    assert "test_wrong_and_allowed PASSED" in out
    line = next(line for line in out.splitlines() if "test_project.py:8: error: torch.neg drops" in line)
    assert line.endswith("[known: neg-ignores-scale]; '--correction neg-rescaled' removes it")
    assert "1 error, all known ('--allow-known' lets them pass)" in out
    assert "v1/qparams/scale-differs/lower/ExirToTosaPass" in out  # in the section that shows all
    assert "forgot the weights" in out
    assert "Traceback" not in out
