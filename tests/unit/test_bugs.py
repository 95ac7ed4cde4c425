"""Bug folders: the text of scripts and reports, and what is told of a script that was run. No torch."""

import ast
import io
import re
import stat
import sys
from functools import cache

import msgspec
import numpy as np
import pytest

from harness.bugs import verify_repro, write_bug
from harness.bugs.executing import executed
from harness.bugs.script import form_of, stable_part, write_script
from harness.bugs.values import FILE, Values
from harness.bugs.verifying import DOES_NOT_SHOW, NEEDS_ENGINE, SHOWS, Verified, readable, run_repro
from harness.case import Case, Constant, Distribution, Graph, Input, Node, encode_case
from harness.certify.evidence import Certificate, Moved
from harness.corpus import default_corpus
from harness.corrections import find_correction
from harness.runs import Minimized
from harness.sampling import calibration_samples, evaluation_inputs
from harness.triage import Finding, operator_chain
from tests.attributes import CONV_3X3
from tests.unit.artifacts import block, value
from tests.unit.ethosu.assembling import STOP, U55, feature_map, kernel, ofm, operation, payload

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
    "quality": found(
        "quality", "loss beyond quantization", "convert", excess=3.0, bound=1.5, input=0, unit="steps", output=0
    ),
    "unchanged": found("model-unchanged", "parameters changed in place", "prepare"),
    "borders": found("buffers", "delegate input dropped", "lower"),
    "zero_points": found("qparams", "zero point differs", "lower"),
    "stream": VELA,
    "duplicate": found("stream", "duplicate", pass_name="Vela", target=ETHOS),
    "vela": found("crash", "exception", "vela", None, "RuntimeError during vela: Compilation failed: no", target=ETHOS),
}


@cache
def script(name):
    finding = FINDINGS[name]
    return write_script(case(finding.target), finding, "a title", RELEASES).text


@pytest.fixture
def python(tmp_path):
    """A stand-in for the interpreter: the bug shows in whatever script it is given."""
    file = tmp_path / "python"
    file.write_text("#!/bin/sh\necho expected 1 actual 2\necho The bug shows.\nexit 1\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def bug(tmp_path, python, finding=NUMERIC, made=None, folder=None, **words):
    file = tmp_path / "smallest.json"
    file.write_bytes(encode_case(made or case()))
    folder = folder or tmp_path / "bug"
    return folder, write_bug(folder, file, finding, releases=RELEASES, line="default", python=python, **words)


@pytest.mark.parametrize("name", FINDINGS)
def test_a_script_is_plain_upstream_python(name):
    text = script(name)
    assert_runs_alone(text)
    assert "class Model(nn.Module)" in text
    assert "The bug shows" in text or name == "stream"


def assert_runs_alone(text):
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


def test_a_script_that_cannot_show_its_bug_says_what_can():
    text = script("stream")
    assert "Exit status 1: the bug shows; 0: it does not. 3: it needs an Ethos-U to show." in text
    assert "The bug shows" not in text
    assert "return 3" in text
    assert "return 3" not in script("duplicate")


@pytest.mark.parametrize("file", sorted(default_corpus().glob("*/*/repro.py")), ids=lambda file: file.parent.name)
def test_the_scripts_of_the_corpus_run_alone_and_are_those_of_its_reports(file):
    text, report = file.read_text(), file.with_name("REPORT.md").read_text()
    assert_runs_alone(text)
    assert f"```python\n{text.rstrip()}\n```" in report
    assert not MACHINE.search(report)
    assert all(f"`{other.name}`" in report for other in file.parent.glob("*.tosa"))


@pytest.mark.parametrize("name", FINDINGS)
def test_the_form_follows_from_the_oracle(name):
    wanted = {"signal": "crash", "duplicate": "stream", "vela": "stream"}.get(name, name)
    assert form_of(FINDINGS[name]) == wanted


def test_a_loss_is_shown_on_its_own_input_against_what_quantization_explains():
    text = script("quality")
    assert (
        "ALLOWED = 1.501  # steps (units of the last place) that quantization with these scales may differ by" in text
    )
    assert "INPUTS = [\n    CALIBRATION[0],\n]" in text


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
    assert "at most 1 step here. Observed: 9 steps" in report
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
    assert "**It does not show the defect by" in report


CERTIFIED = (
    "armdiff's verdict on executorch 1.5.1: certified, the bug is gone. Compared with stock: drawn graphs "
    "(TOSA-1.0+INT: 60, of them 52 the same program, 8 right where stock was wrong) and 28 cases of the corpus."
)


@pytest.mark.parametrize(("digest", "said"), [("", CERTIFIED), ("of another state", "checks that the bug is gone")])
def test_a_stored_certificate_is_told_if_it_is_of_this_correction(tmp_path, python, digest, said):
    folder = tmp_path / "neg-ignores-scale"
    folder.mkdir()
    (folder / "status.toml").write_text('title = "t"\nexpires = 2027-01-01\n')
    moved = (
        Moved(cases="graphs", target="TOSA-1.0+INT", outcomes={"same": 52, "right": 8}),
        Moved(cases="corpus", target="TOSA-1.0+INT", outcomes={"same": 28}),
    )
    made = Certificate(
        name="neg-rescaled", verdict="certified", why="the bug is gone", line="default", releases=RELEASES,
        digest=digest or find_correction("neg-rescaled").digest("1.5.1"), moved=moved,
    )  # fmt: skip
    store = tmp_path / "certificates" / "default"
    store.mkdir(parents=True)
    (store / "neg-rescaled.json").write_bytes(msgspec.json.encode(made))
    bug(tmp_path, python, folder=folder, certificates=tmp_path / "certificates")
    report = (folder / "REPORT.md").read_text()
    assert said in report
    assert ("armdiff's verdict" in report) == (not digest)


def test_entries_that_a_note_speaks_of_are_told_with_their_titles(tmp_path, python):
    for name, note in (("bug", "Same cause as other-bug."), ("other-bug", ""), ("third", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "status.toml").write_text(f'title = "{name}!"\nnote = "{note}"\nexpires = 2027-01-01\n')
    folder, _ = bug(tmp_path, python)
    report = (folder / "REPORT.md").read_text()
    assert "* `other-bug`: other-bug!" in report
    assert "third" not in report


def test_a_large_file_is_not_kept_beside_a_script(tmp_path):
    file = tmp_path / "engine"
    file.write_text("#!/bin/sh\nhead -c 60000 /dev/zero > lowered_module_0.tosa\nexit 3\n")
    file.chmod(0o755)
    folder, _ = bug(tmp_path, str(file), VELA, case(ETHOS))
    assert not [*folder.glob("*.tosa")]
    assert "lowered_module_0.tosa" not in (folder / "REPORT.md").read_text()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def vela_output(commands):
    """What Vela writes for a graph that takes and returns int8 [1, 2, 2], with a pickle in it as Vela has."""
    made = payload(U55, commands)
    arrays = {"cmd_data": np.frombuffer(made.commands, np.uint8), "weight_data": np.zeros(1, np.uint8)}
    arrays |= {"scratch_shape": np.array([128]), "scratch_fast_shape": np.array([0])}
    for side, offset in (("input", 0), ("output", 64)):
        arrays |= {f"{side}_shape": np.array([[1, 1, 1, 1, 2, 2]]), f"{side}_elem_size": np.array([1])}
        arrays |= {f"{side}_offset": np.array([offset]), f"{side}_region": np.array([1])}
    return npz(**arrays, input_quantization=np.array([{"scale": 1}], dtype=object))


def streamed(monkeypatch, commands):
    """A script's files where the reference model returns 1, 2, 3, 5 for 1, 2, 3, 4."""
    graph = block(["x"], ["y"], [("CLAMP", ("x",), ("y",), {})], [value("x", (1, 2, 2)), value("y", (1, 2, 2))])
    monkeypatch.setattr("harness.border._block", lambda _: graph)
    given = {"in_0": np.array([[[1, 2], [3, 4]]], np.int8), "out_0": np.array([[[1, 2], [3, 5]]], np.int8)}
    return Verified(
        NEEDS_ENGINE, files={"m_io.npz": npz(**given), "m.tosa": b""}, programs={"m": vela_output(commands)}
    )


def test_wrong_values_of_a_stream_are_told_beside_the_right_ones(monkeypatch):
    shape = (1, 2, 2)
    copy = {**feature_map("IFM", shape, 0), "IFM_DEPTH_M1": 1, **ofm(U55, shape, 64), **kernel()}
    verified = streamed(monkeypatch, [*operation(U55, "OP_POOL", 1, copy), STOP])
    said = executed(verified, ETHOS)
    assert said.startswith("m, output 0 [1, 2, 2]: 1 of 4 elements are wrong, by up to 1\n")
    assert [line.split() for line in said.splitlines()[1:]] == [
        ["index", "[0,1,1]"],
        ["expected", "5"],
        ["actual", "4"],
    ]


def test_a_stream_that_cannot_be_executed_is_told_with_its_reason(monkeypatch):
    beyond = {**ofm(U55, (1, 2, 2), 126), **feature_map("IFM", (1, 2, 2), 0), "IFM_DEPTH_M1": 1, **kernel()}
    verified = streamed(monkeypatch, [*operation(U55, "OP_POOL", 1, beyond), STOP])
    assert executed(verified, ETHOS).startswith("m: the stream cannot be executed: ")
    assert executed(Verified(NEEDS_ENGINE, files=verified.files), ETHOS) == ""


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


def test_what_gdb_says_of_itself_is_left_out():
    said = 'FATAL ERROR\nwarning: File "/usr/x-gdb.py" auto-loading has been declined\nTo enable\n\tadd\n'
    said += (
        'Using host libthread_db library "/lib/x/libthread_db.so.1".\n0x00007f25 in wait4 ()\n#1  main ()\nThe end.\n'
    )
    assert readable(said) == "FATAL ERROR\nThe end."


def test_an_error_is_told_once():
    said = "KeyError: k\nwhile doing something\nactual:   KeyError: k\nwhile doing something\nThe bug shows.\n"
    assert readable(said).splitlines() == [
        "KeyError: k",
        "while doing something",
        "actual:   KeyError: k",
        "The bug shows.",
    ]
