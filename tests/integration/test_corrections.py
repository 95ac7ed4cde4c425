"""Corrections of the installed release, applied to real lowerings: what is right stays right, and patches do the same.

That the bugs go is in ``test_corpus.py``.
"""

import json
import shutil

import pytest

from harness.campaign.campaign import write_case
from harness.campaign.certify.patching import patch_difference
from harness.campaign.certify.rows import Plan
from harness.case.case import Case, Constant, Distribution, Graph, Input, Seeds
from harness.compat.releases import installed
from harness.corrections import corrections
from harness.corrections.patch import diff_of, patched_package
from harness.triage.corpus import default_corpus, entries
from harness.workers.pool import Pool
from harness.workers.protocol import Task
from tests.integration.conftest import PoolHere, node
from tests.integration.test_commands import written

RELEASE = installed().get("executorch", "")
NEEDED = [name for name, item in corrections().items() if item.for_release(RELEASE)]

SEED_001 = """
import torch
class TinyConvReluCat(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(8, 4, 1)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-0.1, 0.1)
    def forward(self, x, y):
        return self.conv2(torch.cat((torch.relu(self.conv1(x)), y), dim=1))
torch.manual_seed(0)
model = TinyConvReluCat()
calibration = [(torch.rand(1, 4, 16, 16), torch.rand(1, 4, 16, 16) - 0.065)]
"""

WRITES = """
import torch
class Writes(torch.nn.Module):
    def forward(self, x):
        added = torch.relu(x)
        added[0:2].add_(x[2:4])
        assigned = torch.relu(x)
        assigned[1] = x[3]
        read_before = torch.relu(x)
        view = read_before[0:2]
        read_before.mul_(x)
        flat = torch.relu(x)
        flat.view(12)[3:7].sub_(x.view(12)[5:9])
        turned = torch.tanh(x - 0.5)
        turned.permute(1, 0)[0:2].clamp_(0.0, 0.25)
        twice = torch.relu(x).unsqueeze(0)
        twice[:, 1:3].mul_(x[0:2]).add_(x[2:4])
        return added + x, assigned + x, view + x[0:2], flat + x, turned + x, twice[0] + x
torch.manual_seed(0)
model = Writes()
calibration = [(torch.rand(4, 3),) for _ in range(2)]
"""

COUNTS = """
import torch
class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(4))
        self.register_buffer("second", torch.zeros(4))
    def forward(self, x):
        return torch.relu(self.second.add_(torch.nn.functional.layer_norm(self.first.add_(x), (4,))))
torch.manual_seed(0)
model = Counts()
calibration = [(torch.rand(4),) for _ in range(2)]
"""

UNCHANGED = """
import torch
class Unchanged(torch.nn.Module):
    def forward(self, x):
        turned = x.permute(0, 2, 1, 3).permute(0, 2, 1, 3)
        return torch.sigmoid(x), torch.nn.functional.pixel_shuffle(x, 1), turned, torch.cat([x])
torch.manual_seed(0)
model = Unchanged()
calibration = [(torch.rand(1, 2, 3, 3),) for _ in range(2)]
"""


def found_with(case, tmp_path, *chosen):
    """The findings of a case with each of several sets of corrections."""
    path = write_case(case, tmp_path)
    with PoolHere() as pool:
        results = list(pool.run(Task(case=str(path), corrections=names, confirm=False) for names in chosen))
    assert [(result.problem, result.invalid) for result in results] == [(None, None)] * len(chosen)
    return [result.findings for result in results]


@pytest.mark.skipif(RELEASE != "1.5.1", reason="no correction for the installed release")
@pytest.mark.parametrize(
    ("model", "name"), [(WRITES, "view-writes-reach-their-value"), (COUNTS, "inplace-arithmetic-writes-back")]
)
def test_what_is_written_in_place_arrives(tmp_path, armdiff_here, model, name):
    """In stock, each of six outputs lacks it, and so does the next call, whose numbers have names like the buffers'."""
    correction = ("--correction", name)
    armdiff_here(*written(tmp_path, model, "--probes", "none", "--json", "out.json", *correction), cwd=tmp_path)
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["cases"] == 1
    found = [
        item["bucket"] for item in data["findings"] if item["oracle"] in ("crash", "numeric", "outputs", "quality")
    ]
    assert found == []


@pytest.mark.skipif("noop-output-copied" not in NEEDED, reason="no correction for the installed release")
def test_what_passes_reduce_to_nothing_is_copied(tmp_path, armdiff_here):
    """No operator of the partitioner's graph is a no-op; in stock, Vela refuses each of the three outputs."""
    words = written(tmp_path, UNCHANGED, "--probes", "none", "--json", "out.json", "--correction", "noop-output-copied")
    armdiff_here(*words, "--target", "ethos-u85-256", cwd=tmp_path)
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["cases"] == 2
    assert [item for item in data["findings"] if not item["information"]] == []


@pytest.mark.skipif("folded-constant-keeps-codes" not in NEEDED, reason="no correction for the installed release")
def test_a_constant_stacked_with_itself_stays_right(tmp_path):
    """A cat with input_qparams alone, then a view with output_qparams alone: right in stock."""
    constant = Constant(name="c0", shape=(1, 3), kind="ramp", parameters={"dim": 1, "start": 0.0, "stop": 1.0})
    stack = node("n0", "stack", "c0", "c0", dim=0)
    case = Case(graph=Graph(constants=(constant,), nodes=(stack,), outputs=("n0",)))
    assert found_with(case, tmp_path, (), ("folded-constant-keeps-codes",), ("all",)) == [()] * 3


@pytest.mark.skipif("neg-rescaled" not in NEEDED, reason="no correction for the installed release")
def test_a_neg_of_equal_scales_still_saturates(tmp_path):
    """Its code -128 becomes 127. As int32 it would come to mean as 128, without the RESCALE pair of scale 1 between."""
    nodes = (node("n0", "neg", "x"), node("n1", "mean", "n0", dims=(1,), keepdim=False))
    graph = Graph(inputs=(Input(name="x", shape=(1, 2, 3, 9)),), nodes=nodes, outputs=("n1",))
    ramp = Distribution(kind="ramp", parameters={"low": -1.0, "high": 1.0})
    case = Case(graph=graph, calibration={"x": ramp}, seeds=Seeds(calibration=17, evaluation=15))
    assert found_with(case, tmp_path, (), ("neg-rescaled",)) == [()] * 2


@pytest.mark.skipif(RELEASE != "1.5.1", reason="the bug shows on executorch 1.5.1")
def test_the_user_s_view(tmp_path, armdiff_here):
    words = written(tmp_path, SEED_001, "--recipe", "a8w8,qmin=-127", "--probes", "none", "--json", "out.json")
    armdiff_here(*words, cwd=tmp_path)
    stock = json.loads((tmp_path / "out.json").read_text())["findings"]
    assert {item["oracle"] for item in stock if item["known"]} >= {"numeric", "qparams"}
    result = armdiff_here(*words, "--correction", "all", cwd=tmp_path)
    data = json.loads((tmp_path / "out.json").read_text())
    assert result.exit_code == 0, result.output
    assert [item for item in data["findings"] if not item["information"]] == []
    assert set(data["corrections"]) == set(NEEDED)


@pytest.mark.skipif(
    not NEEDED or shutil.which("git") is None, reason="needs a correction of the installed release, and git"
)
def test_the_exported_patch_gives_what_the_correction_gives(tmp_path):
    item = corrections()["neg-rescaled"]
    file = tmp_path / "neg.patch"
    file.write_text(diff_of((item,)))
    assert "diff --git a/backends/arm/_passes/insert_rescales_pass.py" in file.read_text()
    site = patched_package((item,), file, tmp_path / "scratch")
    corpus = [entry for entry in entries([default_corpus()]) if entry.name in item.entries]
    plan = Plan((item,), corpus, 1, 0, tmp_path)
    with PoolHere() as corrected, Pool(1, first_on_path=site) as patched, PoolHere() as stock:
        assert patch_difference(item, plan, corrected, patched) == ""
        assert "corrected" in patch_difference(item, plan, corrected, stock), "stock is another program"
