"""Pages for upstream's trackers, with a stand-in for the workers and for the interpreter that runs the scripts."""

import shutil
import stat
import subprocess

import msgspec
import pytest

from harness.case.reading import read_case
from harness.compat.sources import file_of
from harness.corrections import corrections, find_correction
from harness.corrections.checkout import applied_to, commit_of
from harness.corrections.patch import diff_of, repository_path
from harness.reports.upstream.causes import causes
from harness.reports.upstream.sending import send, write_indexes
from harness.reports.upstream.testing import in_page, regression_test
from harness.triage.corpus import default_corpus, entries
from harness.workers.protocol import CaseResult
from tests.unit.bugs import MACHINE, NUMERIC

NEG = find_correction("neg-rescaled")
MODULE = "executorch.backends.arm._passes.insert_rescales_pass"
NAMES = ("neg-ignores-scale", "conv-relu-clamp-dropped", "linear-relu-clamp-dropped")


class Shows:
    """A pool in which every case shows the bucket that its entry expects, but for those that are gone."""

    jobs = 1

    def __init__(self, found, gone=()):
        self.buckets = {str(cause.head.folder / "case.json"): cause.head.expected.bucket for cause in found}
        self.gone = gone

    def run(self, tasks):
        for task in tasks:
            finding = msgspec.structs.replace(NUMERIC, bucket=self.buckets[task.case])
            shown = not any(name in task.case for name in self.gone)
            yield CaseResult(case=task.case, findings=(finding,) if shown else ())


@pytest.fixture
def python(tmp_path):
    """A stand-in for the interpreter; its exit status says whether the bug shows."""

    def made(status):
        file = tmp_path / f"python{status}"
        file.write_text(f"#!/bin/sh\necho The bug shows.\nexit {status}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return made


@pytest.fixture
def found():
    chosen = entries([default_corpus() / "found" / name for name in NAMES])
    return causes(chosen, list(corrections().values()))


def test_each_cause_gets_a_page_and_each_tracker_an_index(tmp_path, found, python):
    sent = list(send(found, tmp_path, Shows(found), None, python=python(1)))
    assert {item.cause.head.name: item.outcome for item in sent} == dict.fromkeys(
        ("neg-ignores-scale", "conv-relu-clamp-dropped"), "shows"
    )
    folder = tmp_path / "pytorch-executorch"
    assert sorted(file.name for file in folder.iterdir()) == [
        "conv-relu-clamp-dropped", "conv-relu-clamp-dropped.md", "neg-ignores-scale", "neg-ignores-scale.md",
    ]  # fmt: skip
    attached = {file.name for file in (folder / "neg-ignores-scale").iterdir()}
    assert {"repro.py", "case.json"} <= attached
    assert not attached & {"REPORT.md", "status.toml"}
    page = (folder / "neg-ignores-scale.md").read_text()
    assert (folder / "neg-ignores-scale" / "repro.py").read_text().strip() in page
    assert not MACHINE.search(page)
    [index] = write_indexes(sent, tmp_path, dict.fromkeys(NAMES, "executorch 1.5.1"))
    rows = [line for line in index.read_text().splitlines() if line.startswith("| [")]
    assert [row.split("]")[0] for row in rows] == [f"| [{item.file.name}" for item in sent]


def test_what_does_not_show_any_more_gets_no_page(tmp_path, found, python):
    sent = {item.cause.head.name: item for item in send(found, tmp_path, Shows(found, ["neg"]), None, python=python(1))}
    assert sent["neg-ignores-scale"].file is None
    assert "does not show it with the installed packages" in sent["neg-ignores-scale"].why
    assert sent["conv-relu-clamp-dropped"].file is not None


def test_a_script_that_shows_nothing_vetoes_its_page(tmp_path, found, python):
    list(send(found, tmp_path, Shows(found), None, python=python(1)))
    sent = list(send(found, tmp_path, Shows(found), None, python=python(0)))
    assert [item.file for item in sent] == [None, None]
    assert not list((tmp_path / "pytorch-executorch").glob("*.md"))  # those of the run before are gone as well


def test_a_patch_is_made_for_a_checkout_and_the_page_says_so(tmp_path, found, checkout, python):
    sent = list(send(found, tmp_path, Shows(found), None, checkout, python=python(1)))
    pages = {item.cause.head.name: item.file.read_text() for item in sent}
    assert f"It applies to {checkout.name}." in pages["neg-ignores-scale"]
    assert f"It does not apply to {checkout.name}: backends/arm/_passes/" in pages["conv-relu-clamp-dropped"]


@pytest.mark.parametrize(
    ("statuses", "kept", "said"),
    [
        ("10", True, "`test_neg_rescaled.py` (attached) fails without it and passes with it, in fresh processes."),
        ("00", False, "does not show the bug"),
        ("11", False, "the test fails with the fix as well"),
    ],
)
def test_a_fix_s_test_is_kept_if_it_fails_without_it_and_passes_with_it(tmp_path, statuses, kept, said):
    """Stock, then patched: told apart by the folder that comes first on the path."""
    file = tmp_path / "interpreter"
    file.write_text(f'#!/bin/sh\n[ -d "$PYTHONPATH" ] && exit {statuses[1]}\nexit {statuses[0]}\n')
    file.chmod(0o755)
    [entry] = entries([default_corpus() / "found" / "neg-ignores-scale"])
    case = read_case(entry.folder / "case.json")
    made = regression_test(tmp_path, case, NUMERIC, NEG, {}, str(file))
    assert said in in_page(made)
    assert bool(made.file) == kept == (tmp_path / "test_neg_rescaled.py").exists()
    if kept:
        text = (tmp_path / "test_neg_rescaled.py").read_text()
        compile(text, "test", "exec")
        assert "pipeline = TosaPipelineINT(" in text
        assert "def test_neg_rescaled_tosa_INT():" in text


@pytest.fixture
def checkout(tmp_path_factory):
    """The installed file of the correction, as the repository has it."""
    folder = tmp_path_factory.mktemp("checkout")
    file = folder / repository_path(MODULE)
    file.parent.mkdir(parents=True)
    shutil.copyfile(file_of(MODULE), file)
    return folder


def test_a_patch_has_the_checkout_s_lines_and_git_takes_it(checkout):
    file = checkout / repository_path(MODULE)
    file.write_text("# one more line\n" * 7 + file.read_text())
    found = applied_to(checkout, NEG)
    assert found.diff != diff_of([NEG])
    assert not found.moved, "what stands elsewhere in the file does not matter"
    subprocess.run(["git", "init", "--quiet"], cwd=checkout, check=True)
    subprocess.run(["git", "apply", "--check", "-"], cwd=checkout, input=found.diff, text=True, check=True)


def test_a_commit_is_named_with_its_date_where_git_knows_one(checkout):
    assert commit_of(checkout) == checkout.name
    for words in (
        ["init", "--quiet"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    assert " of 20" in commit_of(checkout)
