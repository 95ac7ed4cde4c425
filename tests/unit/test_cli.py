"""The command line: exit status, one-line errors, JSON; nothing here starts a worker."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.campaign.summary import Tally
from harness.cli.command import main
from harness.compat.releases import Basis, line_named

CASE = Path(__file__).parents[2] / "corpus" / "found" / "qmin-lost" / "case.json"


def run(*arguments):
    return CliRunner().invoke(main, [str(item) for item in arguments])


@pytest.mark.parametrize(
    "verb", ["fuzz", "check", "replay", "report", "certify", "table", "bisect", "census", "disasm", "doctor"]
)
def test_every_verb_has_help_with_an_example_and_json(verb):
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"Example: armdiff {verb}" in result.output
    assert "--json" in result.output


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["fuzz", "--target", "ethos-u55-7"], "--target: unknown target 'ethos-u55-7'; use one of TOSA-1.0+INT"),
        (["fuzz", "--time", "soon"], "--time: 'soon' is not a duration; write for example 90s"),
        (["fuzz", "--jobs", "many"], "--jobs: 'many' is not a number of workers"),
        (["fuzz", "--shard", "3/2"], "--shard: '3/2' is no shard"),
        (["fuzz", "--cluster", "nowhere"], "--cluster: 'nowhere' is no scheduler's address; write for example tcp://"),
        (["fuzz", "--cluster", "tcp://h:1", "--jobs", "2"], "--jobs: is for this machine, and --cluster was given"),
        (["check", "no-such-file.py"], "no-such-file.py: is no file; give a Python file"),
        (["check", CASE], "case.json: is a case, no Python file; run it with 'armdiff replay"),
        (["disasm", "no-such-file.pte"], "no-such-file.pte: cannot be read (No such file or directory); give a .pte"),
        (["disasm", "x", "--target", "TOSA-1.0+INT"], "--target: TOSA-1.0+INT has no command stream; use an Ethos-U"),
        (["disasm", "x", "--target", "ethos-u55-7"], "--target: unknown target 'ethos-u55-7'; use one of"),
        (["disasm", "x", "--around", "here"], "--around: 'here' is no offset; write for example 0x120"),
        (["replay", "no-such-folder"], "no-such-folder: does not exist; give corpus folders"),
        (["report", "no-such-run"], "no-such-run: is no run's folder (run.json: No such file or directory)"),
        (["fuzz", "--correction", "typo"], "correction: unknown name 'typo'; use all, a .py file or one of"),
        (["check", "x.py", "--correction", "gone.py"], "gone.py: FileNotFoundError: "),
        (["certify", "typo"], "correction: unknown name 'typo'; use all, a .py file or one of"),
        (["bisect", "no-such-case.json"], "no-such-case.json: cannot be read"),
        (["bisect", "x", "--env", "et999=python"], "--env: 'et999' is no release line; use one of"),
        (["table", "results.json"], "results.json: its name is no release line's; name it"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(arguments, part):
    result = run(*arguments)
    assert result.exit_code == 2
    assert part in result.output
    assert len(result.output.strip().splitlines()) == 1


def test_bad_recipe_and_leg_are_refused_before_anything_runs(tmp_path):
    file = tmp_path / "model.py"
    file.write_text("")
    assert "--recipe: 'w8' does not begin with a width" in run("check", file, "--recipe", "w8").output
    result = run("check", file, "--leg", "quantum")
    assert (result.exit_code, "unknown leg 'quantum'" in result.output) == (2, True)


def test_a_missing_package_is_status_3_with_the_command_to_run(monkeypatch):
    monkeypatch.setattr("harness.pipeline.doctor.installed", lambda: {"torch": "2.13.0"})
    for arguments in (["doctor"], ["fuzz"]):
        result = run(*arguments)
        assert result.exit_code == 3
        assert "pip install" in result.output
        assert "executorch" in result.output


def test_doctor_calls_no_leg_fit_whose_package_is_missing(monkeypatch):
    monkeypatch.setattr("harness.pipeline.doctor.installed", lambda: {"torch": "2.13.0"})
    checks = {item["name"]: item for item in json.loads(run("doctor", "--json", "-").stdout)["checks"]}
    assert checks["leg eager"]["ok"]
    assert checks["leg quantized-eager"]["what"] == "torchao is not installed"
    assert checks["leg tosa-reference"]["what"] == "tosa-tools is not installed"


def test_doctor_explains_every_leg_that_cannot_run():
    result = run("doctor", "--json", "-")
    checks = {item["name"]: item for item in json.loads(result.stdout)["checks"]}
    assert checks["leg tosa-reference"]["ok"]
    assert checks["leg ethos-u-model"]["ok"]
    assert all(item["ok"] or item["remedy"] for item in checks.values())


def test_json_into_a_folder_that_does_not_exist_is_one_line(tmp_path):
    result = run("doctor", "--json", tmp_path / "none" / "x.json")
    assert result.exit_code == 3
    assert "cannot be written" in result.output


def test_a_correction_for_another_release_is_status_3(monkeypatch):
    monkeypatch.setattr("harness.corrections.installed", lambda: {"executorch": "0.9"})
    result = run("replay", "--correction", "neg-rescaled")
    assert result.exit_code == 3
    assert "correction neg-rescaled is for executorch" in result.output
    assert "0.9 is installed; leave it out, or use 'all'" in result.output


def test_every_verb_that_compiles_takes_corrections():
    for verb in ("fuzz", "check", "replay", "census", "disasm"):
        assert "--correction NAME" in run(verb, "--help").output


@pytest.mark.parametrize(
    ("options", "note", "basis"),
    [
        ([], "--expect default applies all of a line's", Basis("default", ("ethos-u-vela",))),
        (["--expect", "et120"], "judged as et120 all the same (--expect)", Basis("et120")),
    ],
)
def test_fuzz_runs_on_releases_of_no_known_line_and_says_what_it_expects(monkeypatch, tmp_path, options, note, basis):
    ran = []

    def campaign(asked, corpus, *_, **__):
        ran.append((asked, corpus))
        return Tally(corpus)

    module = sys.modules["harness.cli.fuzz"]
    for name in ("need_environment", "need_engine"):
        monkeypatch.setattr(module, name, lambda *_: None)
    newer = {**line_named("default").releases, "ethos-u-vela": "5.3.0"}
    monkeypatch.setattr(module, "installed", lambda: newer)
    monkeypatch.setattr("harness.cli.campaigns.installed", lambda: newer)
    monkeypatch.setattr(module, "run_campaign", campaign)
    result = CliRunner().invoke(main, ["fuzz", "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 0, result.output
    assert f"ethos-u-vela do not apply; {note}" in result.stderr
    [(asked, corpus)] = ran
    assert asked.asked.expect == ("".join(options[1:]))
    assert {entry.basis for entry in corpus} == {basis}


@pytest.mark.parametrize(("options", "words"), [([], ()), (["--no-warm"], ("--without=all",))])
def test_no_warm_reaches_the_workers_of_a_campaign(monkeypatch, tmp_path, options, words):
    commands = []

    def campaign(asked, corpus, *_, workers, **__):
        commands.append(workers(1).command)
        return Tally(corpus)

    module = sys.modules["harness.cli.fuzz"]
    for name in ("need_environment", "need_engine"):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(module, "run_campaign", campaign)
    result = CliRunner().invoke(main, ["fuzz", "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 0, result.output
    assert commands == [(sys.executable, "-m", "harness.workers.worker", *words)]
