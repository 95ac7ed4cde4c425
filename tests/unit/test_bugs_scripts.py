"""The text of repro scripts, and the values in it. No torch."""

import ast
import re
import sys
from functools import cache

import msgspec
import numpy as np
import pytest
from tosa.TosaGraph import TosaGraph

from harness.case.case import Case, Distribution
from harness.case.reading import read_case
from harness.case.sampling import calibration_samples, evaluation_inputs
from harness.reports.bugs.script import form_of, stable_part, write_script
from harness.reports.bugs.values import Values
from harness.reports.bugs.verifying import VALUES
from harness.triage.corpus import default_corpus, entries
from tests.unit.bugs import ETHOS, MACHINE, NUMERIC, RELEASES, VELA, case, found

MAY_IMPORT = {*sys.stdlib_module_names, "executorch", "numpy", "torch", "torchao", "tosa", "tosa_reference_model"}

CRASH = found(
    "crash",
    "exception",
    "lower",
    "RewritePadPass",
    "ValueError in RewritePadPass during lower: Expected padding of node aten_pad_3 to be non-negative, got -1",
    type="ValueError",
)

FINDINGS = {
    "crash": CRASH,
    "signal": found(
        "crash", "exception", "leg:tosa-reference", None, "SIGABRT during leg:tosa-reference: x", type="SIGABRT"
    ),
    "runtime refuses": found(
        "crash",
        "exception",
        "leg:executorch",
        None,
        "RuntimeRefused during leg:executorch: aten::gather.out: Check failed: x",
        type="RuntimeRefused",
    ),
    "values": NUMERIC,
    "runtime values": msgspec.structs.replace(NUMERIC, pass_name="ExecuTorch runtime"),
    "vgf": msgspec.structs.replace(NUMERIC, target="vgf"),
    "quality": found(
        "quality", "loss beyond quantization", "convert", excess=3.0, bound=1.5, input=0, unit="steps", output=0
    ),
    "shapes": found("outputs", "shape", "convert", None, "quantized-eager output 0 has shape [1], expected []"),
    "unchanged": found("model-unchanged", "parameters changed in place", "prepare"),
    "borders": found("buffers", "delegate input dropped", "lower"),
    "zero_points": found("qparams", "zero point differs", "lower"),
    "stream": VELA,
    "duplicate": found("stream", "duplicate", pass_name="Vela", target=ETHOS),
    "vela": found("crash", "exception", "vela", None, "RuntimeError during vela: Compilation failed: no", target=ETHOS),
    "vela dies": found(
        "crash", "exception", "vela", None, "SIGSEGV during vela: no native output", target=ETHOS, type="SIGSEGV"
    ),
}


@cache
def script(name):
    finding = FINDINGS[name]
    return write_script(case(finding.target), finding, "a title", RELEASES).text


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


def test_indices_of_a_gather_are_drawn_among_what_they_pick_from():
    folder = default_corpus() / "found" / "vela-u85-gather-index-bytes"
    text = write_script(read_case(folder / "case.json"), VELA, "a title", RELEASES).text
    made = {"__name__": "repro"}
    functions = [node for node in ast.parse(text).body if getattr(node, "name", "") in ("picked_from", "some_inputs")]
    kinds = re.search(r"^KINDS = .*$", text, re.MULTILINE)[0]
    exec(f"import numpy as np\nfrom tosa.DType import DType\nfrom tosa.Op import Op\n{kinds}", made)
    exec(compile(ast.Module(functions, []), "repro.py", "exec"), made)
    block = TosaGraph.GetRootAs((folder / "lowered_module_0.tosa").read_bytes()).Regions(0).Blocks(0)
    [*_, indices] = made["some_inputs"](block)
    assert indices.dtype == np.int32
    assert 0 <= indices.min() <= indices.max() <= 2


SCRIPTS = [file for entry in entries([default_corpus()]) if (file := entry.folder / "repro.py").exists()]


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.parent.name)
def test_the_scripts_of_the_corpus_run_alone_and_are_those_of_its_reports(file):
    text, report = file.read_text(), file.with_name("REPORT.md").read_text()
    assert_runs_alone(text)
    assert f"```python\n{text.rstrip()}\n```" in report
    assert not MACHINE.search(report)
    assert all(f"`{other.name}`" in report for other in file.parent.glob("*.tosa"))


@pytest.mark.parametrize("name", FINDINGS)
def test_the_form_follows_from_the_oracle(name):
    others = {"signal": "crash", "duplicate": "stream", "vela": "stream", "vela dies": "stream", "vgf": "values"}
    wanted = {**others, "runtime refuses": "crash", "runtime values": "values"}.get(name, name)
    assert form_of(FINDINGS[name]) == wanted


def test_a_death_of_vela_shows_in_its_exit_status_and_an_error_in_its_words():
    dies, fails = script("vela dies"), script("vela")
    assert "'exit status -11' in" in dies
    assert 'return None, f"exit status {vela.returncode}"' in dies
    assert "'Compilation failed" in fails
    assert "return None, said" in fails


def test_a_loss_is_shown_on_its_own_input_against_what_quantization_explains():
    text = script("quality")
    assert (
        "ALLOWED = 1.501  # steps (units of the last place) that quantization with these scales may differ by" in text
    )
    assert "INPUTS = [\n    CALIBRATION[0],\n]" in text


def test_a_loss_of_state_is_shown_by_calls_in_a_row_that_begin_with_the_users_state():
    stateful = read_case(default_corpus() / "found" / "written-int64-state-cast")
    finding = found("quality", "loss beyond quantization", "convert", bound=1.5, input=1, unit="steps", output=0)
    text = write_script(stateful, finding, "t", RELEASES).text
    assert "INPUTS = [\n    CALIBRATION[0],\n    CALIBRATION[1],\n]" in text
    assert "reference = copy.deepcopy(model)" in text
    assert text.index("quantized = convert_pt2e(") < text.index("model.get_buffer(name).copy_(buffer)")
    assert "expected = reference(*inputs)" in text


def test_a_script_looks_at_one_element_where_the_bound_of_all_would_hide_it():
    measured = {"input": 0, "output": 0, "unit": "steps", "bound": 3.0, "at": 5, "allowed": 0.001}
    hidden, plain = (
        write_script(case(), found("numeric", "outside rounding", distance=steps, **measured), "t", RELEASES).text
        for steps in (3.0, 4.0)
    )
    assert "np.unravel_index(5, steps.shape)" in hidden
    assert "ALLOWED = 0 " in hidden
    assert "unravel_index" not in plain
    assert "ALLOWED = 3 " in plain
    assert_runs_alone(hidden)


@pytest.mark.parametrize(
    ("outputs", "measured", "loop"),
    [
        (("n1", "n0"), {}, "range(len(expected_values))"),
        (("n1", "n0"), {"output": 1}, "[1]"),
        (("n1",), {}, "[0]"),
    ],
)
def test_a_finding_that_names_no_output_is_looked_for_in_each(outputs, measured, loop):
    one = case()
    several = msgspec.structs.replace(one, graph=msgspec.structs.replace(one.graph, outputs=outputs))
    text = write_script(several, found("qparams", "scale differs", "lower", **measured), "t", RELEASES).text
    assert f"for output in {loop}:" in text
    assert_runs_alone(text)


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


@pytest.mark.parametrize("observer", ["", ",observer=minmax"])
def test_widths_of_single_nodes_become_upstream_calls(observer):
    text = write_script(case(recipe=f"a8w8,per-tensor,a16w8=n1{observer}"), NUMERIC, "a title", RELEASES).text
    made = "get_symmetric_a16w8_quantization_config(is_per_channel=False)"
    wanted = f"configuration = {made}" if observer else f'quantizer.set_module_name("n1", {made})'
    assert wanted in text
    assert text.count('quantizer.set_module_name("n1", ') == 1


def test_what_stays_the_same_of_an_error_holds_no_names_and_numbers():
    assert stable_part(CRASH) == "Expected padding of node"
    wide = msgspec.structs.replace(CRASH, message=CRASH.message.replace("padding of", "padding  of"))
    assert stable_part(wide) == stable_part(CRASH)  # the script puts one space between words, too


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
    with np.load(tmp_path / VALUES) as stored:
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


def test_a_script_for_the_runtime_loads_the_program_and_runs_it():
    for name in ("runtime refuses", "runtime values"):
        text = script(name)
        assert "import executorch.kernels.quantized" in text
        assert "Runtime.get().load_program(bytes(edge.to_executorch().buffer))" in text
        assert "method.execute(inputs)" in text
        assert "tosa_reference_model" not in text
    assert "== 'RuntimeError' and 'failed' in" in script("runtime refuses")


def test_a_script_for_vgf_stops_at_the_graph_that_the_converter_is_given():
    text = script("vgf")
    assert 'VgfCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+FP+INT+int4+int16"))' in text
    assert "VgfQuantizer(compile_spec)" in text
    assert "TOSAPartitioner(TosaCompileSpec(compile_spec.tosa_spec))" in text
    assert "VgfPartitioner" not in text
