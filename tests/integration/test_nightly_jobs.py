"""The jobs of a night, without GitHub: shards, the engine for Vela, the FVP, the scripts of the corpus."""

import json
import os
import re
import subprocess

import pytest
import yaml

from tests.integration.nightly_scripts import ROOT, STAND_IN, executable, script

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = sorted((ROOT / ".ci").rglob("*"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_step_runs_valid_bash_and_scripts_that_exist():
    runs = [step["run"] for file in WORKFLOWS for step in steps(yaml.safe_load(file.read_text())) if "run" in step]
    assert len(runs) >= 5
    for text in runs:
        subprocess.run(["bash", "-n", "-c", text], check=True)
        for name in re.findall(r"\.ci/\S+", text):
            assert os.access(ROOT / name, os.X_OK), name
    for file in SCRIPTS:
        if file.is_file():
            subprocess.run(["bash", "-n", str(file)], check=True)


@pytest.mark.parametrize(("status", "expected"), [(0, 0), (1, 0), (3, 3)])
def test_a_shard_fails_for_what_is_broken_and_not_for_what_is_found(tmp_path, status, expected):
    calls, out = tmp_path / "calls", tmp_path / "night"
    stub = executable(tmp_path / "armdiff", STAND_IN)
    asked = {"LINE": "default", "SHARD": "2/4", "SEED": 20261122, "MINUTES": 5, "NIGHTLY_OUT": out, "MORE": "--jobs 1"}
    done = script("shard", ARMDIFF=stub, CALLS=calls, STATUS=status, **asked)
    assert done.returncode == expected, done.stderr
    words = calls.read_text().split()[1:]
    options = f"--time 300s --shard 2/4 --seed 20261122 --expect default --out {out} --jobs 1"
    assert " ".join(words) == f"fuzz {options}"
    calls.unlink()
    script("shard", ARMDIFF=stub, CALLS=calls, STATUS=status, EXAMPLES=tmp_path / "examples", **asked)
    assert calls.read_text().split()[1:] == [*words, "--database", str(tmp_path / "examples")]
    assert (out / "fuzz.log").exists()


ENGINE = """#!/bin/sh
echo "$*" >> "$CALLS"
echo "12 programs, 3 findings of something else"
echo "7 programs, 2 findings: 1 known bug, 1 new"
echo "  new: numeric-add-1: 1 finding; on ethos-u55-128; Vela 5.1.0"
echo "1 new finding of 1 root cause in 7 programs"
exit "$STATUS"
"""


@pytest.mark.parametrize(("status", "programs", "more"), [(0, "drawn", ""), (1, "mutated", " --from corpus")])
def test_the_share_of_the_vela_engine_ends_with_its_last_lines_and_its_status(tmp_path, status, programs, more):
    calls, out, summary = tmp_path / "calls", tmp_path / "night", tmp_path / "summary"
    stub = executable(tmp_path / "armdiff", ENGINE)
    asked = {"PROGRAMS": programs, "SEED": 20261122, "MINUTES": 3, "NIGHTLY_OUT": out, "VELAS": "5.1.0 5.2.0"}
    done = script("engine", ARMDIFF=stub, CALLS=calls, STATUS=status, GITHUB_STEP_SUMMARY=summary, **asked)
    assert done.returncode == status, done.stderr
    options = f"--time 120s --seed 20261122 --out {out} --json {out}/vela.json{more} --vela 5.1.0 --vela 5.2.0"
    assert calls.read_text() == f"vela {options}\n"
    told = summary.read_text().splitlines()
    assert told[:2] == [f"## TOSA programs, {programs}, through Vela", "```text"]
    assert told[2:-1] == [
        "7 programs, 2 findings: 1 known bug, 1 new",
        "  new: numeric-add-1: 1 finding; on ethos-u55-128; Vela 5.1.0",
        "1 new finding of 1 root cause in 7 programs",
    ]
    wrong = script("engine", ARMDIFF=stub, CALLS=calls, STATUS=0, **{**asked, "PROGRAMS": "none"})
    assert (wrong.returncode, "drawn or mutated" in wrong.stderr) == (2, True)


UPSTREAM = {
    "examples/arm/setup.sh": """#!/bin/sh
echo "setup $*" >> "$CALLS"
mkdir -p examples/arm/arm-scratch
echo 'echo "path $UNSET" >> "$CALLS"' > examples/arm/arm-scratch/setup_path.sh
""",
    "backends/arm/scripts/build_executor_runner.sh": """#!/bin/sh
echo "build $*" >> "$CALLS"
""",
}


def test_the_fvp_is_installed_with_upstreams_own_script_once_its_licence_was_accepted(tmp_path):
    source, tree, calls = tmp_path / "source", tmp_path / "tree", tmp_path / "calls"
    for name, text in UPSTREAM.items():
        executable(source / name, text)
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(source)]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "a"], ["tag", "v9.9.9"]):
        subprocess.run([*words, *command], check=True)
    python = executable(tmp_path / "python", '#!/bin/sh\n[ "$1" = -c ] && echo 9.9.9 || echo "$RUNNER --target=$3"\n')
    asked = {
        "FVP_LICENCE": "accepted",
        "EXECUTORCH_ROOT": tree,
        "NIGHTLY_OUT": tmp_path / "night",
        "PYTHON": python,
        "SOURCE": source.as_uri(),
        "TARGETS": "ethos-u55-128",
        "CALLS": calls,
        "RUNNER": [*UPSTREAM][1],
    }
    refused = script("fvp-setup", **{**asked, "FVP_LICENCE": ""})
    assert (refused.returncode, "is not 'accepted'" in refused.stderr, calls.exists()) == (2, True, False)
    done = script("fvp-setup", **asked)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = ["setup --i-agree-to-the-contained-eula", "path", "build --target=ethos-u55-128"]
    assert [line.rstrip() for line in calls.read_text().splitlines()] == expected


BOTH, FVP_ALONE = {"ethos-u-fvp": "ran", "ethos-u-model": "ran"}, {"ethos-u-fvp": "ran"}


@pytest.mark.parametrize(
    ("differ", "legs", "status", "told"),
    [
        (False, BOTH, 0, "* ethos-u55-128: they agreed on 5 of 5 delegates, bit for bit"),
        (True, BOTH, 1, "* ethos-u55-128: they agreed on 2 of 5 delegates, bit for bit"),
        (False, {"ethos-u-fvp": "no FVP", "ethos-u-model": "ran"}, 3, "* 3 programs did not run on the FVP: no FVP"),
        (False, FVP_ALONE, 3, "* no program ran on both"),
    ],
)
def test_the_summary_says_on_how_many_delegates_fvp_and_model_agreed(tmp_path, differ, legs, status, told):
    def line(delegates, findings=(), **words):
        result = {"target": "ethos-u55-128", "delegates": delegates, "findings": findings, "fallback": [], "legs": legs}
        return json.dumps({"result": {**result, **words}})

    apart = [{"legs": ["ethos-u-fvp", "ethos-u-model"]}] if differ else [{"legs": ["tosa-reference", "ethos-u-model"]}]
    rows = [line(2), line(3, apart), line(7, fallback=["aten.sort.default"]), '{"cut o']
    stub = executable(
        tmp_path / "armdiff", '#!/bin/sh\necho "$*" >> "$CALLS"\nprintf %s "$ROWS" > "$OUT/results.jsonl"\n'
    )
    out, summary, calls = tmp_path / "night", tmp_path / "summary", tmp_path / "calls"
    asked = {"SEED": 7, "MINUTES": 5, "NIGHTLY_OUT": out, "GITHUB_STEP_SUMMARY": summary, "TARGETS": "ethos-u55-128"}
    done = script("fvp", ARMDIFF=stub, CALLS=calls, ROWS="\n".join(rows), OUT=out, **asked)
    assert done.returncode == status, done.stderr
    assert told in summary.read_text().splitlines()
    assert calls.read_text().rstrip().endswith("--target ethos-u55-128 --ethos-u-engine both")


@pytest.mark.parametrize("status", [0, 1])
def test_the_scripts_of_the_corpus_run_and_their_status_is_the_jobs(tmp_path, status):
    calls = tmp_path / "calls"
    stub = executable(tmp_path / "tox", STAND_IN)
    done = script("repros", TOX=stub, CALLS=calls, STATUS=status, NIGHTLY_OUT=tmp_path / "night")
    assert done.returncode == status, done.stderr
    assert calls.read_text().split()[1:] == ["run", "-e", "repros"]


def test_a_seed_is_the_date_or_what_was_asked_for():
    assert re.fullmatch(r"seed=20\d{6}\n", script("seed", SEED="").stdout)
    assert script("seed", SEED=7).stdout == "seed=7\n"
    for wrong in ("$(touch x)", "7\nother=1", "-1"):
        done = script("seed", SEED=wrong)
        assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("minutes", ["x", "", "-1", "1.5", "$(touch x)", "9" * 40])
def test_minutes_that_are_no_number_are_one_line(tmp_path, minutes):
    stub = executable(tmp_path / "armdiff", STAND_IN)
    asked = {"LINE": "default", "SHARD": "2/4", "SEED": 7, "MINUTES": minutes, "NIGHTLY_OUT": tmp_path / "night"}
    done = script("shard", ARMDIFF=stub, CALLS=tmp_path / "calls", STATUS=0, **asked)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("MINUTES: ")
    assert "write for example 150" in line
