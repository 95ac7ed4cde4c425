"""``corpus/programs``: each program shows its bug with the installed Vela as its bug.toml says, and is known by it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.case.errors import CannotRun
from harness.compat.releases import installed
from harness.compat.velas import PACKAGE
from harness.tosa.engine import BLOCK, Plan, run
from harness.tosa.program import encode
from harness.tosa.translating import from_flatbuffer, to_flatbuffer
from harness.triage.corpus import default_corpus
from harness.triage.known import classified, shown_kind
from harness.triage.program_entries import by_age, program_entries, program_folders, read_program_bug

MACHINE = re.compile(r"/(tmp|work|home|root)/")
FOLDERS = program_folders()
HERE = [item for item in FOLDERS if read_program_bug(item).in_version(installed()[PACKAGE])]
ELSEWHERE = [item for item in FOLDERS if item not in HERE]
ACCELERATORS = {"ethos-u55": "ethos-u55-128", "ethos-u65": "ethos-u65-256", "ethos-u85": "ethos-u85-256"}


def shown(folder: Path, accelerator: str):
    program = from_flatbuffer((folder / "program.tosa").read_bytes())
    results = run(Plan(lambda _: (accelerator, [program]), most=2 * BLOCK))
    return [item for result in results for item in result.findings]


def test_there_are_some():
    assert FOLDERS
    assert not {item.name for item in FOLDERS} & {item.parent.name for item in default_corpus().rglob("status.toml")}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda item: item.name)
def test_a_program_shows_its_bug_where_it_should(folder: Path):
    bug = read_program_bug(folder)
    kind = bug.fingerprints[0].partition(":")[0]
    for family, accelerator in ACCELERATORS.items():
        having = bug.in_version(installed()[PACKAGE]) and (not bug.families or family in bug.families)
        assert any(shown_kind(item) == kind for item in shown(folder, accelerator)) == having, accelerator


@pytest.mark.parametrize("folder", HERE, ids=lambda item: item.name)
def test_its_smallest_program_is_known_by_its_fingerprint(folder: Path):
    bug = read_program_bug(folder)
    kind = bug.fingerprints[0].partition(":")[0]
    [bare] = [item for item in program_entries(installed()[PACKAGE]) if item.name == folder.name]
    accelerator = ACCELERATORS[(bug.families or tuple(ACCELERATORS))[0]]
    found = next(item for item in shown(folder, accelerator) if shown_kind(item) == kind)
    told = msgspec.structs.replace(bare.bug, conditions=())
    for text in bug.fingerprints:
        reduced = msgspec.structs.replace(found, fingerprint=text)
        assert classified(reduced, (told,)).entry == folder.name
        assert classified(reduced, (told,)).known
    assert not classified(msgspec.structs.replace(found, fingerprint="values: x0 int8 [1]"), (told,)).known
    placed = msgspec.structs.replace(bare.bug, fingerprints=())
    assert classified(found, (placed,)).known == any(not item.whole for item in bug.conditions)
    smallest = msgspec.structs.replace(found, fingerprint="values: x0 int8 [1]")
    assert classified(smallest, (placed,)).known == bool(bug.conditions)


@pytest.mark.parametrize("folder", ELSEWHERE, ids=lambda item: item.name)
def test_what_the_installed_vela_does_not_have_is_known_with_one_that_has_it(folder: Path, tmp_path: Path):
    """In a process of its own: this one has imported the installed Vela."""
    bug = read_program_bug(folder)
    version = max((name for name, yes in bug.velas.items() if yes), key=by_age)
    accelerator = ACCELERATORS[(bug.families or tuple(ACCELERATORS))[0]]
    words = [str(folder / "program.tosa"), "--accelerator", accelerator, "--vela", version, "--out", str(tmp_path)]
    command = [sys.executable, "-m", "harness.cli", "vela", *words, "--json", str(tmp_path / "result.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == CannotRun.exit_status:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    findings = json.loads((tmp_path / "result.json").read_text())["findings"]
    assert folder.name in {item["entry"] for item in findings if item["state"] == "known"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda item: item.name)
def test_its_files_are_there_and_say_the_same(folder: Path):
    for condition in read_program_bug(folder).conditions:
        condition.check()
    program = from_flatbuffer((folder / "program.tosa").read_bytes())
    assert to_flatbuffer(program)
    assert encode(program)
    report = (folder / "REPORT.md").read_text()
    assert all(step.op in report for step in program.operators)
    script = (folder / "repro.py").read_text()
    compile(script, "repro.py", "exec")
    assert "import harness" not in script
    assert "from harness" not in script
    assert not MACHINE.search(script + report)


def test_versions_that_are_not_listed_are_those_before_them():
    bug = read_program_bug(default_corpus() / "programs" / "vela-u55-add-of-two-small-factors")
    assert [bug.in_version(item) for item in ("4.5.0", "5.0.0", "5.0.1", "5.1.0", "5.3.0")] == [
        *(False, False, False),
        *(True, True),
    ]


def test_further_buckets_of_a_bug_are_known_with_it():
    name = "vela-rescale-channels-of-several-writers"
    [entry] = [item for item in program_entries("5.2.0") if item.name == name]
    assert entry.bug is not None
    assert [item.split("/")[1] for item in (entry.bug.bucket, *entry.bug.also)] == ["numeric", "crash"]
