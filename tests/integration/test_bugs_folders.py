"""Bug folders: what is written into them, and what their reports say. No torch."""

import stat

import msgspec
import pytest

from harness.campaign.certify.evidence import Certificate, Moved
from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.corrections import corrections, find_correction
from harness.reports.bugs import write_bug
from harness.reports.bugs.verifying import DOES_NOT_SHOW, NEEDS_ENGINE, SHOWS
from harness.triage.corpus import default_corpus, entries, read_entry
from tests.unit.bugs import ETHOS, MACHINE, NUMERIC, RELEASES, VELA, case


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
    status += '[lines.default]\nstatus = "reproduces"\nbucket = "v1/crash/x/lower"\n[lines.et141]\nstatus = "fixed"\n'
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


@pytest.mark.parametrize(("uncut", "also"), [(f"{NUMERIC.bucket}/x", (f"{NUMERIC.bucket}/x",)), (NUMERIC.bucket, ())])
def test_a_new_entry_knows_the_bucket_of_the_uncut_case_as_well(tmp_path, python, uncut, also):
    made = Minimized(bucket=uncut, final="f", origin="o.json", case="c.json", operators=("neg",), state="minimized")
    folder, _ = bug(tmp_path, python, minimized=made)
    expected = read_entry(folder).status.lines["default"]
    assert (expected.bucket, expected.also) == (NUMERIC.bucket, also)


def test_a_neighbour_is_shown_as_code(tmp_path, python):
    (tmp_path / "near.json").write_bytes(encode_case(case()))
    made = Minimized(
        bucket="v1/crash/exception/lower", final="b", origin="o", case="c", operators=(), state="minimized",
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
    assert "`armdiff replay case.json`" in report


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


def test_a_report_for_vela_says_which_velas_have_the_defect(tmp_path, python):
    (tmp_path / "bug").mkdir()
    lines = "".join(
        f'[lines.{line}]\nstatus = "{status}"\n'
        for line, status in (("vela52", "fixed"), ("default", "reproduces"), ("et141", "reproduces"))
    )
    (tmp_path / "bug" / "status.toml").write_text(f'title = "Vela: x"\nexpires = 2027-01-01\n{lines}')
    folder, _ = bug(tmp_path, python, VELA, case(ETHOS))
    table = [line for line in (folder / "REPORT.md").read_text().splitlines() if line.startswith("| ")]
    assert table == [
        "| ethos-u-vela | executorch | the bug |",
        "| 5.2.0 | 1.5.1 | does not show |",
        "| 5.1.0 | 1.5.1 | shows |",
        "| 5.1.0 | 1.4.1 | shows |",
    ]


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


def test_stored_reports_say_what_their_entries_and_corrections_say():
    """Remedy: python -m harness.reports.bugs ENTRY."""
    stale = []
    for entry in entries([default_corpus()]):
        report = entry.folder / "REPORT.md"
        fixes = [item for item in corrections().values() if entry.name in item.entries and item.for_release("1.5.1")]
        if report.exists():
            wanted = (entry.status.title, entry.status.note, *(item.change for item in fixes))
            stale += [entry.name] if any(words not in report.read_text() for words in wanted) else []
    assert stale == []
