"""Scripts that are written for a bug show it with the installed packages.

One case for each way in which a script can show something: an exception, values, and a command stream, which
armdiff's model executes afterwards. All cases run in this process. Two scripts have a fresh one, the others a fork
(``tox run -e repros`` runs every script of the corpus in a process of its own).
"""

import io
import os
import runpy
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from harness.campaign.reduction.harm import VALUES, harm_of, sharing
from harness.campaign.reduction.minimizing import Terms, minimize
from harness.case.case import Case, Graph, Input, encode_case
from harness.case.reading import read_case
from harness.compat.releases import release_line
from harness.reports.bugs import write_bug
from harness.reports.bugs.of_entry import named
from harness.reports.bugs.verifying import SCRIPT, Verified, outcome_of, readable
from harness.triage.corpus import default_corpus, read_entry
from harness.workers.protocol import Task
from tests.forked import in_fork
from tests.integration.conftest import PoolHere, node, uniform

pytestmark = pytest.mark.skipif(release_line() != "default", reason="written for the default release line")

SAID = {
    "addmm-constant-bias-prepare": ("shows", "actual:   AttributeError: 'Tensor' object has no attribute 'to_tensor'"),
    "neg-ignores-scale": ("shows", "actual   codes"),
    "vela-reduction-of-slice": ("needs an Ethos-U engine", "elements are wrong, by up to"),
}


@pytest.fixture(scope="module")
def findings():
    """The finding of each entry."""
    corpus = default_corpus()
    assert corpus is not None
    found = [read_entry(corpus / "found" / name) for name in SAID]
    with PoolHere() as pool:
        results = pool.run([Task(case=str(entry.folder / "case.json"), confirm=False) for entry in found])
        return {entry.name: (entry, named(entry, one.findings)) for entry, one in zip(found, results, strict=True)}


def run_in_fork(folder, *_):
    """What ``run_repro`` says of a script that runs in a fork of this process, whose imports are done."""

    def run():
        status = 0
        os.chdir(folder)
        with redirect_stdout(io.StringIO()) as printed:
            try:
                runpy.run_path(SCRIPT, run_name="__main__")
            except SystemExit as ended:
                status = int(ended.code or 0)
        return f"{outcome_of(status, printed.getvalue())}\n{readable(printed.getvalue())}".encode()

    made = in_fork(run)
    assert made is not None
    return Verified(*made.decode().split("\n", 1))


@pytest.mark.parametrize("name", SAID)
def test_a_script_shows_its_bug(tmp_path, findings, name, monkeypatch):
    if name != "vela-reduction-of-slice":  # one in a process of its own
        monkeypatch.setattr("harness.reports.bugs.writing.run_repro", run_in_fork)
    entry, finding = findings[name]
    outcome, said = SAID[name]
    assert finding is not None
    folder = tmp_path / name
    folder.mkdir()
    shutil.copy(entry.folder / "status.toml", folder)
    assert write_bug(folder, entry.folder / "case.json", finding) == outcome
    report = (folder / "REPORT.md").read_text()
    assert said in report
    assert report.startswith(f"# {entry.status.title}\n")
    assert bool([*folder.glob("lowered*.tosa")]) == (finding.pass_name == "Vela")
    assert (folder / "smallest.tosa").exists() == (finding.pass_name == "Vela")
    assert ("### Smallest TOSA file" in report) == (finding.pass_name == "Vela")


def test_a_scale_that_was_lost_is_minimized_with_the_values_that_it_costs(tmp_path, monkeypatch):
    """The case of neg-ignores-scale beside an operator that does not matter, looked for by its scale alone."""
    monkeypatch.setattr("harness.reports.bugs.writing.run_repro", run_in_fork)
    corpus = default_corpus()
    assert corpus is not None
    known = read_case(corpus / "found" / "neg-ignores-scale")
    graph = Graph(
        inputs=(*known.graph.inputs, Input(name="y", shape=(1,))),
        nodes=(node("n2", "tanh", "y"), *known.graph.nodes),
        outputs=("n2", *known.graph.outputs),
    )
    case = Case(graph=graph, calibration={**known.calibration, "y": uniform()})
    (tmp_path / "case.json").write_bytes(encode_case(case))
    with PoolHere() as pool:
        findings = pool.run_one(Task(case=str(tmp_path / "case.json"), confirm=False, probes="none")).findings
        [scale] = [item for item in findings if item.kind == "scale differs"]
        harm = harm_of([*filter(sharing(scale, ()), findings)])
        assert (harm.kind, harm.unit) == (VALUES, "steps")
        made, found = minimize(scale, pool, tmp_path / "small", Terms(), harm=harm)
    assert (made.state, made.bucket) == ("minimized", scale.bucket)
    assert "neg" in made.operators
    assert "tanh" not in made.operators
    assert found.measured["distance"] >= harm.distance / 2
    assert write_bug(tmp_path / "bug", Path(made.case), found, minimized=made) == "shows"
    # a finding that names no output is looked for in each
    assert write_bug(tmp_path / "uncut", tmp_path / "case.json", scale) == "shows"
