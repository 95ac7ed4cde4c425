"""Scripts that are written for a bug show it in a fresh process with the installed packages."""

import pytest

from harness.bugs import verify_repro, write_bug
from harness.bugs.__main__ import named
from harness.compat.releases import release_line
from harness.corpus import default_corpus, read_entry
from harness.pool import Pool
from harness.protocol import Task


@pytest.mark.skipif(release_line() != "default", reason="written for the default release line")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("addmm-constant-bias-prepare", "'Tensor' object has no attribute"),
        ("neg-ignores-scale", "actual   codes"),
    ],
)
def test_a_script_shows_its_bug(tmp_path, name, said):
    corpus = default_corpus()
    assert corpus is not None
    entry = read_entry(corpus / "found" / name)
    file = entry.folder / "case.json"
    with Pool(1) as pool:
        result = pool.run_one(Task(case=str(file), confirm=False))
    finding = named(entry, result.findings)
    assert finding is not None
    folder = tmp_path / "bug"
    assert write_bug(folder, file, finding, corpus=[entry]) == "shows"
    report = (folder / "REPORT.md").read_text()
    assert said in report
    assert report.startswith(f"# {entry.status.title}\n")
    script = folder / "repro.py"
    script.write_text(script.read_text().replace("The bug shows", "It is fixed"))
    assert verify_repro(folder) != "shows"
