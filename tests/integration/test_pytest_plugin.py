"""The pytest plugin with a stand-in worker: shards, the corpus, and that it imports nothing heavy."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from harness.triage.corpus import default_corpus

CONFTEST = """
import functools, sys
from harness.campaign import campaign
from harness.pipeline import doctor
from harness.workers import pool
campaign.BLOCK = 3  # a shard draws all blocks
doctor.required_missing = lambda: []
pool.Pool = functools.partial(pool.Pool, command=(sys.executable, "-m", "tests.stand_in"))
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with a few tests, whose armdiff workers are stand-ins."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # what else is installed is half of a start
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist.plugin -p harness.cli.pytest_plugin")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_own="import pytest\n\n@pytest.mark.parametrize('n', range(12))\ndef test_own(n): pass\n")
    return pytester


def ran(folder):
    return [json.loads(line)["number"] for line in (folder / "results.jsonl").read_text().splitlines()]


def test_without_an_option_nothing_is_added(project):
    project.runpytest_subprocess().assert_outcomes(passed=12)


def test_a_campaign_is_one_more_test(project):
    result = project.runpytest_subprocess("--armdiff-max-examples=2", "--armdiff-target=TOSA-1.0+INT", "-v")
    result.assert_outcomes(passed=13)
    result.stdout.fnmatch_lines(["*armdiff-1-of-1::fuzz PASSED*"])
    assert ran(project.path / "armdiff-out/pytest/1-of-1") == [0, 1]


@pytest.mark.parametrize("dist", ["load", "loadfile", "worksteal", "loadgroup"])
def test_every_worker_gets_a_shard(project, dist):
    result = project.runpytest_subprocess(
        "-n2", f"--dist={dist}", "--armdiff-max-examples=6", "--armdiff-target=TOSA-1.0+INT", "-v"
    )
    result.assert_outcomes(passed=18 if dist.startswith(("loadf", "loadg")) else 14)
    lines = [line for line in result.outlines if "PASSED" in line and "::fuzz" in line]
    assert {line.split("]")[0] for line in lines} == {"[gw0", "[gw1"}
    numbers = [ran(project.path / f"armdiff-out/pytest/{index}-of-2") for index in (1, 2)]
    assert sorted(numbers[0] + numbers[1]) == [*range(6)]


def test_new_findings_fail_with_a_listing(project):
    project.makeconftest(f"{CONFTEST}\nimport os\nos.environ['STAND_IN'] = 'signal SIGSEGV'\n")
    result = project.runpytest_subprocess("--armdiff-max-examples=1", "--armdiff-target=TOSA-1.0+INT")
    result.assert_outcomes(passed=12, failed=1)
    result.stdout.fnmatch_lines(
        ["new findings; 1 output of 1 case unjudged (lower failed)", "*v1/crash/*SIGSEGV*", "everything is in *1-of-1"]
    )


def test_what_was_not_judged_is_a_warning(project):
    project.makeconftest(f"{CONFTEST}\nimport os\nos.environ['STAND_IN'] = 'unjudged'\n")
    result = project.runpytest_subprocess("--armdiff-max-examples=1", "--armdiff-target=TOSA-1.0+INT")
    result.assert_outcomes(passed=13, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "*UnjudgedWarning: armdiff: nothing new; 1 output of 1 case unjudged (aten.sin)",
            "*unjudged: aten.sin: 1 output of 1 case: no rule of rounding",
        ]
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [("--armdiff-time=soon", "*'soon' is not a duration*"), ("--armdiff-target=npu", "*--armdiff-target*npu*")],
)
def test_a_wrong_option_is_one_clear_line(project, option, message):
    result = project.runpytest_subprocess(option, "--armdiff-max-examples=1")
    result.assert_outcomes(passed=12, failed=1)
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()


def entry(folder, name):
    shutil.copytree(default_corpus() / "found" / name, folder / "corpus" / name)


def test_a_corpus_is_one_test_an_entry_and_an_unexpected_pass_fails(project):
    entry(project.path, "neg-ignores-scale")
    result = project.runpytest_subprocess("corpus", "-rA")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["unexpected pass, expected reproduces (*"])


def test_a_corpus_entry_that_cannot_be_read_is_one_clear_line(project):
    entry(project.path, "neg-ignores-scale")
    (project.path / "corpus/neg-ignores-scale/status.toml").write_text("title = 1")
    result = project.runpytest_subprocess("corpus")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*status.toml: *"])


def test_the_plugin_imports_nothing_heavy(project):
    project.makepyfile(
        test_light="import sys\n\ndef test_light():\n"
        "    heavy = {'torch', 'executorch', 'numpy', 'hypothesis'} & set(sys.modules)\n"
        "    assert not heavy\n"
    )
    project.makeconftest("")
    project.runpytest_subprocess("test_light.py").assert_outcomes(passed=1)


def test_the_plugin_is_an_entry_point():
    from importlib.metadata import entry_points

    assert [item.value for item in entry_points(group="pytest11", name="armdiff")] == ["harness.cli.pytest_plugin"]
    assert sys.modules["harness.cli.pytest_plugin"]
