"""The commands as a user runs them: one in a process of its own, the others in this warm one or with forks of it."""

import json

import pytest

from harness.artifacts.program import decode_program
from harness.artifacts.tosa import decode_tosa
from harness.case import memory
from harness.reports.programs import programs_in
from harness.triage.corpus import default_corpus
from harness.workers.pool import Pool

MODEL = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        return torch.sigmoid(self.inner(x))
torch.manual_seed(0)
model = Net()
calibration = [(torch.rand(1, 4),), (torch.rand(1, 4),)]
"""


def written(tmp_path, text, *options):
    """The words that check a model."""
    (tmp_path / "model.py").write_text(text)
    return ("check", "model.py", "--target", "TOSA-1.0+INT", "--jobs", "1", *options)


@pytest.fixture
def check_here(tmp_path, armdiff_here):
    """``check_here(text, option…)``: check a model in this process."""
    return lambda text, *options: armdiff_here(*written(tmp_path, text, *options), cwd=tmp_path)


def test_check_of_a_healthy_model(tmp_path, check_here):
    result = check_here(MODEL + "inputs = [(torch.ones(1, 4),)]\n", "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "nothing found"
    assert "  delegated: 2 of 2 operators (100 %) and 100 % of 16 MACs, in 1 delegate" in result.stdout.splitlines()
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["findings"] == []
    assert data["legs"]["tosa-reference"]["ran"] == 1
    assert data["cases"] == 1
    stored = tmp_path / "armdiff-out" / "check" / "model-TOSA-1.0+INT"
    assert {file.name for file in stored.iterdir()} == {"case.json", "tensors.safetensors", "call_sites.json", ".lock"}


def test_a_network_is_run_in_a_process_of_its_own(monkeypatch, check_here):
    """What a network leaves behind is no part of what its next target holds."""
    asked, run = [], Pool.run
    monkeypatch.setattr(Pool, "run", lambda pool, tasks: run(pool, asked.extend(tasks) or asked))
    nodes = 2
    for largest in (nodes, nodes - 1):
        monkeypatch.setattr(memory, "LARGE", largest)
        asked.clear()
        assert check_here(MODEL, "--probes", "none").exit_code == 0
        assert [task.apart for task in asked] == [largest < nodes]


def test_an_operator_without_a_rule_is_told_beside_nothing_new(tmp_path, check_here):
    returned = "torch.sigmoid(self.inner(x))"
    text = MODEL.replace(f"return {returned}", f"y = {returned}; return y, torch.lgamma(y)")
    assert text != MODEL
    result = check_here(text, "--json", "out.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "nothing found; 1 output of 1 case unjudged (aten.lgamma)"
    assert "\nunjudged: aten.lgamma: 1 output of 1 case, " in result.stdout
    [(name, row)] = json.loads((tmp_path / "out.json").read_text())["unjudged"].items()
    assert (name, row["outputs"], row["cases"]) == ("aten.lgamma", 1, 1)


KNOWN = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        left, right = x.chunk(2, 1)
        return torch.cat([left, right], 1), self.negative(right)
    def negative(self, x):
        return torch.neg(torch.sigmoid(x))
model = Net()
calibration = [(torch.rand(1, 4),), (torch.rand(1, 4),)]
"""


def test_a_known_bug_fails_at_its_line_unless_that_is_allowed(tmp_path, check_here):
    result = check_here(KNOWN, "--json", "out.json", "-q")
    assert result.exit_code == 1, result.output
    assert len(result.stdout.splitlines()) == 2, result.output
    line, verdict = result.stdout.splitlines()
    assert line.startswith("model.py:6: error: torch.neg drops the ratio between input and output scale, at neg in Net")
    assert line.endswith("; on TOSA-1.0+INT [known: neg-ignores-scale]; '--correction neg-rescaled' removes it")
    assert verdict == "1 error, all known ('--allow-known' lets them pass)"
    data = json.loads((tmp_path / "out.json").read_text())
    assert {item["node"] for item in data["findings"]} == {"neg"}
    assert data["profiles"]["TOSA-1.0+INT"]["operators"] == [4, 0]

    allowed = check_here(KNOWN, "--allow-known", "-q")
    assert allowed.exit_code == 0, allowed.output
    assert allowed.stdout.splitlines() == [line, "1 error, all known and allowed"]

    mended = check_here(KNOWN, "--correction", "neg-rescaled", "-q")
    assert (mended.exit_code, mended.stdout) == (0, "nothing found\n"), mended.output


def test_a_line_is_told_where_configure_needs_the_user_s_own_module(check_here):
    result = check_here(KNOWN + "def configure(q):\n    pass\n", "-q")
    assert result.stdout.startswith("model.py:6: error: torch.neg drops"), result.output


def test_an_ethos_u_program_is_described(tmp_path, armdiff_here):
    (tmp_path / "model.py").write_text(MODEL)
    words = ("--target", "ethos-u55-128", "--jobs", "1", "--json", "out.json")
    result = armdiff_here("check", "model.py", *words, cwd=tmp_path)
    assert result.exit_code == 0, result.output
    profile = json.loads((tmp_path / "out.json").read_text())["profiles"]["ethos-u55-128"]
    assert profile["macs"] == [16, 0]
    assert profile["leg"] == "ethos-u-model"
    assert profile["commands"] > 0
    assert profile["cycles"] > 0
    assert profile["clock"] == 5e8
    assert f"  Vela's estimate: {profile['cycles']:,} cycles an inference, " in result.stdout


def test_a_captured_conv_and_batch_norm_folds_like_the_original(check_here):
    """Folding looks for parameters: a captured weight that is a mere buffer makes it fail."""
    layers = "torch.nn.Conv2d(2, 3, 3, bias=False), torch.nn.BatchNorm2d(3), torch.nn.ReLU6()"
    text = f"import torch\nmodel = torch.nn.Sequential({layers})\ncalibration = [(torch.rand(1, 2, 6, 6),)]\n"
    result = check_here(text)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("configuration", "recipe"),
    [
        ("None", "a8w8,float=linear"),
        ("get_symmetric_quantization_config(weight_qmin=-7, weight_qmax=7)", "a8w8,a8w4=linear"),
    ],
)
def test_configure_is_used_and_what_it_says_of_nodes_is_recorded(tmp_path, check_here, configuration, recipe):
    text = MODEL + "from executorch.backends.arm.quantizer import get_symmetric_quantization_config\n"
    text += f"def configure(q):\n    q.set_module_name('inner', {configuration})\n"
    result = check_here(text, "--json", "out.json")
    assert result.exit_code == 0, result.output
    case = json.loads((tmp_path / "armdiff-out" / "check" / "model-TOSA-1.0+INT" / "case.json").read_text())
    assert case["recipe"] == recipe


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (MODEL + "raise RuntimeError('broken')\n", "model.py, line 12: raises RuntimeError: broken; make"),
        (MODEL.replace("model = Net()", "net = Net()"), "model.py: defines no 'model'; define model as an nn.Module"),
        (MODEL.replace("calibration =", "samples ="), "model.py: defines no 'calibration'; define calibration"),
        (MODEL.replace("rand(1, 4)", "rand(1, 5)"), "model fails on calibration[0] (inputs [1, 5])"),
        (MODEL.replace("(torch.rand(1, 4),)]", "(torch.rand(2, 4),)]"), "calibration[1][0] is torch.float32 [2, 4]"),
        (MODEL + "inputs = [torch.rand(1, 4)]\n", "inputs[0] is not a tuple of inputs; write (x,)"),
        ("def broken(:\n", "model.py, line 1: raises SyntaxError"),
    ],
)
def test_a_bad_file_is_one_line_and_status_2(check_here, text, part):
    result = check_here(text)
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if not line.startswith("armdiff: starting")]
    assert len(lines) == 1, result.stderr
    assert part in lines[0]


DEADLY = """
def configure(quantizer):
    import os, signal
    if type(quantizer).__module__.startswith("executorch"):
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_native_death_is_a_finding_with_its_stage_and_last_words(tmp_path, workers_forked, command_here):
    result = command_here(*written(tmp_path, MODEL + DEADLY, "--json", "out.json"), cwd=tmp_path)
    assert result.exit_code == 1, result.output
    [finding] = json.loads((tmp_path / "out.json").read_text())["findings"]
    assert finding["oracle"] == "crash"
    assert "SIGSEGV" in finding["message"]
    assert "last words" in finding["detail"]
    assert finding["stage"]


def test_fuzz_is_deterministic_and_complete(tmp_path, workers_forked, command_here):
    results = []
    words = ("--max-examples", 2, "--seed", 5, "--target", "TOSA-1.0+INT")
    for name, jobs, more in (("a", 1, ()), ("b", 2, ("--no-minimize",))):
        options = (*more, "--out", name, "--json", f"{name}.json")
        run = command_here("fuzz", "--jobs", jobs, *words, *options, cwd=tmp_path)
        assert run.exit_code in (0, 1), run.output
        data = json.loads((tmp_path / f"{name}.json").read_text())
        data.pop("seconds")
        results.append((data, {file.name: file.read_bytes() for file in (tmp_path / name / "cases").iterdir()}))
    (first, cases), (second, other_cases) = results
    assert cases == other_cases
    assert len(cases) == first["graphs"] == first["cases"] == 2
    assert [(item["bucket"], item["message"]) for item in first["findings"]] == [
        (item["bucket"], item["message"]) for item in second["findings"]
    ]
    assert sum(row["ran"] + row["skipped"] for row in first["legs"].values()) > 0


def test_replay_keeps_the_files_that_a_viewer_opens(tmp_path, armdiff_here):
    corpus = default_corpus()
    assert corpus is not None
    done = armdiff_here("replay", corpus / "found" / "neg-ignores-scale", "--keep", "files", cwd=tmp_path)
    assert done.exit_code == 0, done.output
    program, tosa = programs_in(tmp_path / "files")
    assert (program.name, tosa.name) == ("neg-ignores-scale.pte", "neg-ignores-scale.lowered_module_0.tosa")
    assert [plan.name for plan in decode_program(program.read_bytes()).plans] == ["forward"]
    assert "NEGATE" in {operator.op for operator in decode_tosa(tosa.read_bytes()).main.operators}
    assert str(tosa.relative_to(tmp_path)) in done.stderr
