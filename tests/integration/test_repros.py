"""Every script of the corpus shows its bug, and every stored input of a Vela bug does on armdiff's model.

All scripts run in forks of one process (``forked_scripts``). One that cannot show its bug, because that takes
something that executes a command stream, has to say so. What it writes (a TOSA file, inputs with the outputs that are
right) has to be what is stored beside it; on these stored inputs, what Vela made of the stored graph is executed on
the model, and has to show what the entry's bucket names.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.npz import decode_npz
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.compat.releases import release_line
from harness.ethosu.accelerator import accelerator_named
from harness.ethosu.checks import examine
from harness.ethosu.commands import decode_commands
from harness.locate.divergence import compare_delegate
from harness.locate.divergence.draws import Draw
from harness.reports.bugs.verifying import (
    IO_FILE,
    NEEDS_ENGINE,
    SCRIPT,
    SHOWS,
    VALUES,
    outcome_of,
    readable,
)
from harness.triage.corpus import Entry, default_corpus, entries

pytestmark = pytest.mark.skipif(
    "ARMDIFF_REPROS" not in os.environ, reason="minutes of scripts: 'tox run -e repros' runs them"
)

SERVER = Path(__file__).with_name("forked_scripts.py")
SAYS_SO = "3: it needs an Ethos-U to show."
DOUBTFUL = "The script below does not show this"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Entry -> (folder in which its script ran, exit status)."""
    line = release_line()
    assert line == "default", f"scripts are written for the release line default, not for {line}: install its packages"
    corpus = default_corpus()
    assert corpus is not None
    expected = [entry for entry in entries([corpus]) if entry.expected and entry.expected.status == "reproduces"]
    assert len(expected) > 90
    folders = {str(run_folder(tmp_path_factory, entry)): entry for entry in expected}
    said = subprocess.run([sys.executable, "-I", SERVER, *folders], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr[-2000:]
    lines = [line.split(" ", 1) for line in said.stdout.splitlines()]
    statuses = {folder: int(status) for status, folder in lines if folder in folders}
    return [(entry, Path(folder), statuses[folder]) for folder, entry in folders.items()]


def run_folder(factory, entry: Entry) -> Path:
    """A folder with what a maintainer would copy."""
    folder = factory.mktemp(entry.name)
    for name in (SCRIPT, VALUES):
        if (entry.folder / name).exists():
            (folder / name).write_bytes((entry.folder / name).read_bytes())
    return folder


def test_every_script_shows_its_bug_or_says_that_it_cannot(ran):
    wrong = {}
    for entry, folder, status in ran:
        output = (folder / "output").read_text(errors="replace")
        outcome = outcome_of(status, output, readable(output, str(folder)))
        says_so = SAYS_SO in (entry.folder / SCRIPT).read_text()
        if outcome != (NEEDS_ENGINE if says_so else SHOWS):
            wrong[entry.name] = outcome
    assert wrong == {}


def test_every_report_says_of_its_script_what_it_does(ran):
    doubtful = [entry.name for entry, _, _ in ran if DOUBTFUL in (entry.folder / "REPORT.md").read_text()]
    without = [
        entry.name
        for entry, _, _ in ran
        if (entry.folder / SCRIPT).read_text().strip() not in (entry.folder / "REPORT.md").read_text()
    ]
    assert (doubtful, without) == ([], [])


def test_stored_graphs_and_values_are_those_that_the_script_writes(ran):
    checked, wrong = 0, []
    for entry, folder, _ in ran:
        for stored in sorted(entry.folder.glob(f"*{IO_FILE}")):
            checked += 1
            if not same_arrays(stored, folder / stored.name):
                wrong.append((entry.name, stored.name))
        for stored in sorted(entry.folder.glob("*.tosa")):
            assert (folder / stored.name).exists(), entry.name
    assert checked > 45
    assert wrong == []


def test_stored_inputs_show_the_bug_on_the_model(ran):
    judged, wrong = 0, {}
    for entry, folder, _ in ran:
        for stored in sorted(entry.folder.glob(f"*{IO_FILE}")):
            name = stored.name.removesuffix(IO_FILE)
            seen = shown(entry, name, folder / f"{name}_vela" / f"{name}_vela.npz")
            judged += 1
            if entry.expected.bucket.split("/")[1:3] not in seen:
                wrong[entry.name] = seen
    assert judged > 45
    assert wrong == {}


def shown(entry: Entry, name: str, payload: Path) -> list[list[str]]:
    """Oracle and kind of what the model shows of a payload on the stored inputs."""
    tosa = (entry.folder / f"{name}.tosa").read_bytes()
    with np.load(entry.folder / f"{name}{IO_FILE}") as values:
        inputs = tuple(values[f"in_{i}"] for i in range(sum(key.startswith("in_") for key in values.files)))
    target = read_case(entry.folder / "case.json").target
    try:
        comparison = compare_delegate(
            tosa, decode_npz(payload.read_bytes()), target, [Draw("stored", inputs)], origin=False
        )
    except BadInput as error:  # what Vela made takes or returns something else
        return [["buffers", "input-count"]] if "inputs" in error.problem else []
    accelerator = accelerator_named(target)
    read = examine(
        comparison.steps, decode_commands(decode_npz(payload.read_bytes()).commands, accelerator), accelerator
    )
    seen = [["stream", issue.kind.replace(" ", "-")] for issue in (*comparison.issues, *read)]
    if comparison.difference is not None:
        seen.append(["numeric", "differs-from-the-TOSA-reference"])
    if comparison.stopped is not None:
        seen.append(["stream", "cannot-be-executed"])
    return seen


def same_arrays(stored: Path, made: Path) -> bool:
    """Do two files hold the same arrays?"""
    with np.load(stored) as one, np.load(made) as other:
        return one.files == other.files and all(
            one[name].dtype == other[name].dtype and np.array_equal(one[name], other[name]) for name in one.files
        )
