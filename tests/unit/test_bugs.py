"""Bug folders: the text of scripts and reports, and what is told of a script that was run. No torch."""

import ast
import io
import re
import stat
import sys

import numpy as np
import pytest

from harness.bugs import verify_repro, write_bug
from harness.bugs.executing import executed
from harness.bugs.script import form_of, stable_part, write_script
from harness.bugs.values import FILE, Values
from harness.bugs.verifying import DOES_NOT_SHOW, NEEDS_ENGINE, SHOWS, Verified, readable, run_repro
from harness.case import Case, Constant, Distribution, Graph, Input, Node, encode_case
from harness.runs import Minimized
from harness.sampling import calibration_samples, evaluation_inputs
from harness.triage import Finding, operator_chain
from tests.attributes import CONV_3X3

RELEASES = {"executorch": "1.5.1", "torch": "2.13.0", "torchao": "0.18.0"}
MAY_IMPORT = {*sys.stdlib_module_names, "executorch", "numpy", "torch", "torchao", "tosa", "tosa_reference_model"}
MACHINE = re.compile(r"/(?:tmp|home|work|root|usr)/")


def case(target="TOSA-1.0+INT", recipe="a8w8", **words):
    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4, 8, 8)),),
        constants=(
            Constant(name="k", shape=(1, 4, 1, 1), kind="literal", parameters={"values": [1.0, 2.0, 3.0, 4.0]}),
        ),
        nodes=(
            Node(name="n0", operator="conv2d", inputs=("x",), attributes=CONV_3X3),
            Node(name="n1", operator="maximum", inputs=("n0", "k")),
        ),
        outputs=("n1",),
    )
    calibration = {"x": Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})}
    return Case(graph=graph, calibration=calibration, target=target, recipe=recipe, **words)


def found(oracle, kind, stage="run", pass_name=None, message="", target="TOSA-1.0+INT", **measured):
    return Finding(
        bucket=f"v1/{oracle}/{kind}/{stage}",
        oracle=oracle,
        kind=kind,
        stage=stage,
        pass_name=pass_name,
        message=message,
        measured=measured,
        target=target,
        recipe="a8w8",
        chain=operator_chain(case().graph),
        case="case.json",
    )


CRASH = found(
    "crash",
    "exception",
    "lower",
    "RewritePadPass",
    "ValueError in RewritePadPass during lower: Expected padding of node aten_pad_3 to be non-negative, got -1",
    type="ValueError",
)
NUMERIC = found(
    "numeric", "outside rounding", pass_name="NegPass", input=0, output=0, bound=1.0, distance=9.0, unit="steps"
)
VELA = found("numeric", "differs from the TOSA reference", pass_name="Vela", target="ethos-u55-128")
ETHOS = "ethos-u55-128"
FINDINGS = {
    "crash": CRASH,
    "signal": found(
        "crash", "exception", "leg:tosa-reference", None, "SIGABRT during leg:tosa-reference: x", type="SIGABRT"
    ),
    "values": NUMERIC,
    "quality": found("quality", "loss beyond quantization", "convert", excess=3.0, unit="steps", output=0),
    "unchanged": found("model-unchanged", "parameters changed in place", "prepare"),
    "borders": found("buffers", "delegate input dropped", "lower"),
    "zero_points": found("qparams", "zero point differs", "lower"),
    "stream": VELA,
    "duplicate": found("stream", "duplicate", pass_name="Vela", target=ETHOS),
    "vela": found("crash", "exception", "vela", None, "RuntimeError during vela: Compilation failed: no", target=ETHOS),
}


@pytest.fixture
def python(tmp_path):
    """A stand-in for the interpreter: the bug shows in whatever script it is given."""
    file = tmp_path / "python"
    file.write_text("#!/bin/sh\necho expected 1 actual 2\necho The bug shows.\nexit 1\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def bug(tmp_path, python, finding=NUMERIC, made=None, **words):
    file = tmp_path / "smallest.json"
    file.write_bytes(encode_case(made or case()))
    folder = tmp_path / "bug"
    return folder, write_bug(folder, file, finding, releases=RELEASES, line="default", python=python, **words)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_script_is_plain_upstream_python(name):
    finding = FINDINGS[name]
    text = write_script(case(finding.target), finding, "a title", RELEASES).text
    compile(text, "repro.py", "exec")
    roots = {
        (node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert roots <= MAY_IMPORT
    assert "armdiff" not in text
    assert "harness" not in text
    assert not MACHINE.search(text)
    assert "class Model(nn.Module)" in text
    assert "The bug shows" in text


@pytest.mark.parametrize("name", FINDINGS)
def test_the_form_follows_from_the_oracle(name):
    wanted = {"signal": "crash", "duplicate": "stream", "vela": "stream"}.get(name, name)
    assert form_of(FINDINGS[name]) == wanted


def test_a_script_stops_after_the_stage_that_fails():
    finding = found("crash", "exception", "prepare", None, "TypeError during prepare: no", type="TypeError")
    text = write_script(case(), finding, "a title", RELEASES).text
    assert "prepare_pt2e(graph, quantizer)" in text
    assert "convert_pt2e" not in text


def test_a_recipe_becomes_upstream_calls():
    text = write_script(case(recipe="a8w8,per-tensor,qmin=-127,io=uint8,float=n1"), NUMERIC, "a title", RELEASES).text
    assert "is_per_channel=False, act_qmin=-127, act_qmax=127" in text
    assert "quantizer.set_io(get_uint8_io_quantization_config())" in text
    assert 'quantizer.set_module_name("n1", None)' in text


def test_what_stays_the_same_of_an_error_holds_no_names_and_numbers():
    assert stable_part(CRASH) == "Expected padding of node"


def test_samples_are_drawn_where_that_gives_the_same_bits():
    values = Values(case(), {})
    text = values.samples()
    assert "draw('x', i).uniform(-1.0, 1.0, (1, 4, 8, 8))" in text
    assert not values.stored


def test_samples_that_no_expression_gives_are_stored(tmp_path):
    skewed = Distribution(kind="channel_skew", parameters={"ratio": 10.0})
    given = Case(graph=case().graph, calibration={"x": skewed})
    values = Values(given, {})
    assert "VALUES['sample.0.x']" in values.samples()
    values.write(tmp_path)
    with np.load(tmp_path / FILE) as stored:
        assert stored["sample.1.x"].tobytes() == calibration_samples(given)[1][0].tobytes()


def test_every_evaluation_input_is_drawn():
    values = Values(case(), {})
    texts = [values.evaluation(item, place) for place, item in enumerate(evaluation_inputs(case()))]
    assert texts[0] == "CALIBRATION[0]"
    assert any("seed=1000003" in text for text in texts)
    assert any("ends('x'" in text for text in texts)
    assert not values.stored


def test_literals_read_back_as_the_same_bits():
    array = np.array([[0.1, -3.4e38, 1e-45, 7.0]], np.float32)
    text = Values(case(), {}).tensor(array, "x")
    again = np.array(ast.literal_eval(re.search(r"\[.*?\]", text)[0]), np.float32)
    assert again.tobytes() == array.tobytes()
    assert text.endswith(".reshape((1, 4))")


def test_a_folder_holds_what_a_maintainer_needs(tmp_path, python):
    folder, outcome = bug(tmp_path, python)
    assert outcome == SHOWS
    assert {file.name for file in folder.iterdir()} == {"case.json", "repro.py", "REPORT.md", "status.toml"}
    report = (folder / "REPORT.md").read_text()
    for part in ("### 🐛 Describe the bug", "**How to reproduce**", "**Observed**", "**Expected**", "### Versions"):
        assert part in report
    assert "`NegPass`" in report
    assert "at most 1 steps. Observed: 9 steps" in report
    assert "expected 1 actual 2" in report
    assert "[pip3] executorch==1.5.1" in report
    assert (folder / "repro.py").read_text().strip() in report
    assert not MACHINE.search(report)


def test_a_status_that_exists_is_read_and_never_written(tmp_path, python):
    status = (
        'title = "neg ignores the scale"\nupstream = ["https://x/1"]\nexpires = 2027-01-01\nnote = "Nobody rescales."\n'
    )
    status += '[lines.default]\nstatus = "reproduces"\nbucket = "b"\n[lines.et141]\nstatus = "fixed"\n'
    (tmp_path / "bug").mkdir()
    (tmp_path / "bug" / "status.toml").write_text(status)
    folder, _ = bug(tmp_path, python)
    assert (folder / "status.toml").read_text() == status
    report = (folder / "REPORT.md").read_text()
    assert report.startswith("# neg ignores the scale\n")
    assert "Nobody rescales." in report
    assert "* https://x/1" in report
    assert "| 1.5.1 | 2.13.0 | shows |" in report
    assert "| 1.4.1 | 2.13.0 | does not show |" in report


def test_a_neighbour_is_shown_as_code(tmp_path, python):
    (tmp_path / "near.json").write_bytes(encode_case(case()))
    made = Minimized(
        bucket="b", final="b", origin="o", case="c", operators=(), state="minimized",
        neighbour="near.json", distinguishes="without neg",
    )  # fmt: skip
    folder, _ = bug(tmp_path, python, minimized=made, root=tmp_path)
    _, _, after = (folder / "REPORT.md").read_text().partition("**What runs clean**")
    assert "without neg." in after
    assert "class Model(nn.Module)" in after


def test_a_script_that_does_not_show_the_bug_is_called_that(tmp_path):
    folder, outcome = bug(tmp_path, "/bin/true")
    assert outcome == DOES_NOT_SHOW
    report = (folder / "REPORT.md").read_text()
    assert "does not show this by itself" in report
    assert "`armdiff replay`" in report


def test_a_vela_defect_is_written_for_vela(tmp_path):
    file = tmp_path / "engine"
    file.write_text("#!/bin/sh\necho compiled > lowered_module_0.tosa\nexit 3\n")
    file.chmod(0o755)
    folder, outcome = bug(tmp_path, str(file), VELA, case(ETHOS))
    assert outcome == NEEDS_ENGINE
    assert (folder / "lowered_module_0.tosa").exists()
    report = (folder / "REPORT.md").read_text()
    assert report.splitlines()[0].startswith("# Vela: ")
    assert "vela --accelerator-config=ethos-u55-128 --config=Arm/vela.ini" in report
    assert "does not show the wrong values by\nitself" in report


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_a_stream_that_the_model_refuses_is_told_with_its_reason():
    given = {"m_io.npz": npz(in_0=np.zeros(4, np.int8), out_0=np.ones(4, np.int8)), "m.tosa": b"TOSA"}
    verified = Verified(NEEDS_ENGINE, files=given, programs={"m": npz(cmd_data=np.zeros(4, np.uint8))})
    assert executed(verified, ETHOS).startswith("m: the stream cannot be executed: ")
    assert executed(Verified(NEEDS_ENGINE, files=given), ETHOS) == ""


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("print('The bug shows.'); raise SystemExit(1)", SHOWS),
        ("pass", DOES_NOT_SHOW),
        ("raise SystemExit(3)", NEEDS_ENGINE),
        ("raise KeyError('k')", "ended with status 1: KeyError: 'k'"),
        ("import os; print(os.environ.get('PYTHONPATH')); raise SystemExit(7)", "ended with status 7: None"),
    ],
)
def test_what_a_script_did_is_told_by_its_status_and_words(tmp_path, body, outcome, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "repro.py").write_text(body)
    assert verify_repro(tmp_path) == outcome


def test_a_script_that_hangs_is_ended(tmp_path):
    (tmp_path / "repro.py").write_text("import time; time.sleep(60)")
    assert run_repro(tmp_path, timeout=0.5).outcome == "ran longer than 0.5 s"


def test_output_is_told_without_paths_of_this_machine():
    said = 'File "/home/me/lib/python3.11/site-packages/torch/fx/graph.py", line 3\n/tmp/r/repro.py: UserWarning: no\n'
    assert readable(said) == 'File "torch/fx/graph.py", line 3'
