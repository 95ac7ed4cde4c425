"""Scripts that are written for a bug show it in a fresh process with the installed packages.

One case for each way in which a script can show something: an exception, values, and a command stream, which
armdiff's model executes afterwards. All cases run in one worker; each script is a process of its own.
"""

import shutil

import pytest

from harness.bugs import write_bug
from harness.bugs.__main__ import named
from harness.compat.releases import release_line
from harness.corpus import default_corpus, read_entry
from harness.pool import Pool
from harness.protocol import Task

pytestmark = pytest.mark.skipif(release_line() != "default", reason="written for the default release line")

SAID = {
    "addmm-constant-bias-prepare": ("shows", "actual:   AttributeError: 'Tensor' object has no attribute 'to_tensor'"),
    "neg-ignores-scale": ("shows", "actual   codes"),
    "vela-batched-softmax": ("needs an Ethos-U engine", "of 48 elements are wrong, by up to"),
}


@pytest.fixture(scope="module")
def findings():
    """The finding of each entry."""
    corpus = default_corpus()
    assert corpus is not None
    found = [read_entry(corpus / "found" / name) for name in SAID]
    with Pool(1) as pool:
        results = pool.run([Task(case=str(entry.folder / "case.json"), confirm=False) for entry in found])
        return {entry.name: (entry, named(entry, one.findings)) for entry, one in zip(found, results, strict=True)}


@pytest.mark.parametrize("name", SAID)
def test_a_script_shows_its_bug(tmp_path, findings, name):
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
    assert bool([*folder.glob("*.tosa")]) == (finding.pass_name == "Vela")
