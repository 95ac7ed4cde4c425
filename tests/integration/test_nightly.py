"""The scripts of the nightly job do what they say, without GitHub."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from tests.unit.reporting_runs import chain_case, each_target, finding, make_run

ROOT = Path(__file__).resolve().parent.parent.parent


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


SCRIPTS = sorted((ROOT / ".ci").rglob("*"))


ARMDIFF = f"{sys.executable} -m harness.cli"


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_step_runs_valid_bash_and_scripts_that_exist():
    runs = [step["run"] for file in WORKFLOWS for step in steps(yaml.safe_load(file.read_text())) if "run" in step]
    assert len(runs) >= 5
    for script in runs:
        subprocess.run(["bash", "-n", "-c", script], check=True)
        for name in re.findall(r"\.ci/\S+", script):
            assert os.access(ROOT / name, os.X_OK), name
    for file in SCRIPTS:
        if file.is_file():
            subprocess.run(["bash", "-n", str(file)], check=True)


STAND_IN = """#!/bin/sh
echo "$0 $*" >> "$CALLS"
while [ $# -gt 1 ]; do [ "$1" = --out ] && echo started > "$2/run.json"; shift; done
exit "$STATUS"
"""


def script(name, **values):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **{key: str(value) for key, value in values.items()}}
    return subprocess.run([ROOT / ".ci" / "nightly" / name], env=environment, capture_output=True, text=True)


def executable(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


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


GH = """#!/bin/sh
echo "$1 $2" >> "$CALLS"
case "$1 $2" in
"issue list") [ -n "$EXISTING" ] && cat "$EXISTING" ;;
"issue create")
    while [ $# -gt 0 ]; do [ "$1" = --body-file ] && cat "$2" >> "$BODIES"; shift; done
    echo https://example.org/issues/9 ;;
esac
"""


@pytest.fixture(name="night")
def make_night(tmp_path):
    """Two shards that found the same two bugs, minimized, and a GitHub that writes down what it is asked."""
    first = finding(blamed="APassThatNoCorpusEntryKnows")
    second = finding("qparams", "clamp lost", stage="lower", blamed="APass")
    for index in (1, 2):
        folder = tmp_path / "runs" / f"run-default-{index}"
        items = []
        for name, found in (("one", first), ("two", second)):
            (folder / "bugs" / name).mkdir(parents=True)
            (folder / "bugs" / name / "case.json").write_bytes(encode_case(chain_case("relu")))
            (folder / "bugs" / name / "REPORT.md").write_text(f"# the report of {name}\n")
            final, case = f"{found.bucket}#relu", f"bugs/{name}/case.json"
            items.append(Minimized(bucket=found.bucket, final=final, origin="", case=case, operators=("relu",),
                                   state="minimized", folder=name))  # fmt: skip
        make_run(folder, each_target("relu", findings=[first, second]), minimized=items, shard=(index, 2))
    executable(tmp_path / "bin" / "gh", GH)
    (tmp_path / "existing.json").write_text("[]")

    def verdict(existing="existing.json", **values):
        (tmp_path / "calls").write_text("")
        (tmp_path / "bodies").write_text("")
        (tmp_path / "summary").write_text("")
        done = script(
            "verdict",
            **{
                "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                "RUNS": tmp_path / "runs",
                "NIGHTLY_OUT": tmp_path / "verdict",
                "GITHUB_STEP_SUMMARY": tmp_path / "summary",
                "ARMDIFF": ARMDIFF,
                "FILE_ISSUES": "true",
                "TOLERATED": "newest prerelease",
                "CALLS": tmp_path / "calls",
                "BODIES": tmp_path / "bodies",
                "EXISTING": tmp_path / existing if existing else "",
                **values,
            },
        )
        return done, (tmp_path / "calls").read_text(), (tmp_path / "summary").read_text()

    return verdict


def test_a_night_files_each_bug_once_and_none_that_was_closed(tmp_path, night):
    done, calls, summary = night()
    assert done.returncode == 1, done.stderr
    assert calls.count("issue create") == 2
    assert summary.startswith("# armdiff: 2 new bugs (2 buckets) and no known ones in 2 graphs, 4 cases of 2 runs")
    assert summary.count("* filed: https://example.org/issues/9") == 2
    assert "Trouble" not in summary
    assert sorted(item.name for item in (tmp_path / "verdict" / "additions").iterdir()) == ["one", "two"]
    bodies = (tmp_path / "bodies").read_text()
    assert bodies.startswith("# the report of one")

    (one, two) = re.split(r"(?<=-->)\n", bodies)[:2]
    listed = [{"number": 1, "state": "CLOSED", "body": one}, {"number": 2, "state": "OPEN", "body": "unrelated"}]
    (tmp_path / "existing.json").write_text(json.dumps(listed))
    done, calls, _ = night()
    assert calls.count("issue create") == 1
    assert (tmp_path / "bodies").read_text() == f"{two}\n"
    assert "filed already: #1 (closed)" in done.stdout

    (tmp_path / "existing.json").write_text(json.dumps([*listed, {"number": 3, "state": "OPEN", "body": two}]))
    assert "issue create" not in night()[1]


def test_nothing_is_filed_unless_asked_and_unless_github_says_what_exists(night):
    assert night(FILE_ISSUES="false")[1] == ""
    done, calls, summary = night(existing=None)
    assert done.returncode == 2
    assert "issue create" not in calls
    assert "GitHub did not say which issues exist" in summary
    assert "2 new bugs" in summary


REPLAYS = """#!/bin/sh
if [ "$1" = replay ]; then
    [ -s "$REPLAY" ] || { echo "nothing is installed"; exit 3; }
    while [ $# -gt 1 ]; do [ "$1" = --json ] && cp "$REPLAY" "$2"; shift; done
    exit 1
fi
exec $REAL "$@"
"""
ASKED = """#!/bin/sh
echo "$1 $2 $3" >> "$CALLS"
exit "$GITHUB"
"""
OWN = "https://github.com/us/armdiff/issues/"


def replay_of(version, **outcomes):
    """JSON of a replay: entry -> outcome; entry n is linked with our issue n, and with one that is not ours."""
    rows = [
        {"entry": name, "title": f"title of {name}", "outcome": outcome, "what": "4 of 4 elements wrong",
         "findings": [{"oracle": "numeric"}] * (outcome != "fixed"),
         "upstream": [f"{OWN}{place}", "https://github.com/pytorch/executorch/issues/1"]}
        for place, (name, outcome) in enumerate(outcomes.items(), 1)
    ]  # fmt: skip
    return json.dumps({"entries": rows, "releases": {"executorch": version, "ethos-u-vela": "5.1.0"}})


def test_a_new_release_closes_what_it_fixed_and_reopens_what_came_back(tmp_path):
    executable(tmp_path / "bin" / "gh", ASKED)
    stub = executable(tmp_path / "armdiff", REPLAYS)
    calls, summary = tmp_path / "calls", tmp_path / "summary"

    def night(replay, github=0):
        calls.write_text("")
        summary.write_text("")
        (tmp_path / "replay.json").write_text(replay)
        done = script(
            "changes",
            PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", LINE="newest", KEPT=tmp_path / "kept", CALLS=calls,
            NIGHTLY_OUT=tmp_path / "night", GITHUB_STEP_SUMMARY=summary, ARMDIFF=stub, REAL=ARMDIFF, GITHUB=github,
            REPLAY=tmp_path / "replay.json", FILE_ISSUES="true", GH_REPO="us/armdiff",
        )  # fmt: skip
        return done.returncode, calls.read_text().splitlines(), summary.read_text()

    first = replay_of("1.6.0", a="reproduces", b="reproduces", c="fixed")
    assert night("")[0] == 3
    assert night(first) == (0, [], "newest is replayed for the first time: there is nothing to compare it with\n")
    assert night(first) == (0, [], "")
    second = replay_of("1.7.0", a="fixed", b="reproduces", c="unexpected failure")
    status, asked, said = night(second, github=1)
    assert status == 2, "GitHub did not take it: the next night tries again"
    assert asked == [f"issue close {OWN}1", f"issue reopen {OWN}3"]
    status, asked, said = night(second)
    assert (status, asked) == (0, [f"issue close {OWN}1", f"issue reopen {OWN}3"])
    assert said.startswith("## executorch 1.6.0 to 1.7.0\n\n### 1 bug broke\n\n* `c`: title of c")
    assert "### 1 bug fixed\n\n* `a`: title of a" in said
    assert said.endswith("1 bug left.\n")
    assert night(second) == (0, [], "")


REHEARSED = """#!/bin/sh
[ "$1" = fuzz ] || exec $REAL "$@"
echo "$*" >> "$CALLS"
while [ $# -gt 0 ]; do
    case "$1" in --shard) number=${2%/*} ;; --out) out=$2 ;; esac
    shift
done
[ -d "$PREPARED/run-default-$number" ] || exit 3
cp -R "$PREPARED/run-default-$number/." "$out"
exit 1
"""


def test_a_night_is_rehearsed_with_one_command_and_goes_on_where_it_was(tmp_path, night):
    """Two shards in turn, the verdict over both, and nothing asked of GitHub; what ended is not run again."""
    assert night is not None, "it has prepared the runs"
    calls, out = tmp_path / "fuzz", tmp_path / "rehearsal"
    calls.touch()
    values = {"NIGHT_LINES": "default", "SHARDS": 2, "MINUTES": 4, "SEED": 0, "NIGHTLY_OUT": out, "REAL": ARMDIFF}
    values |= {"ARMDIFF": executable(tmp_path / "armdiff", REHEARSED), "CALLS": calls, "PREPARED": tmp_path / "runs"}
    late = (tmp_path / "runs" / "run-default-2").rename(tmp_path / "late")
    done = script("rehearse", **values)
    assert done.returncode == 2
    assert "run-default-2: is no run's folder" in done.stdout
    late.rename(tmp_path / "runs" / "run-default-2")
    done = script("rehearse", **values)
    assert done.returncode == 1, done.stderr
    asked = [re.findall(r"--time (\S+) --shard (\S+) --seed (\S+)", line)[0] for line in calls.read_text().splitlines()]
    assert asked == [("240s", "1/2", "0"), ("240s", "2/2", "0"), ("240s", "2/2", "0")]
    assert "default 1/2: ended already" in done.stdout
    assert "# armdiff: 2 new bugs (2 buckets)" in done.stdout.splitlines()[-2]
    assert "2 additions to the corpus" in done.stdout.splitlines()[-1]
    assert sorted(item.name for item in (out / "additions").iterdir()) == ["one", "two"]
    assert len([*(out / "issues").glob("*.md")]) == 2
    assert (out / "summary.md").read_text().count("* filed: only rehearsed") == 2


def test_a_night_is_not_green_by_absence(tmp_path, night):
    """A missing, cut or damaged run is red, whatever the others found, and is named."""
    runs = tmp_path / "runs"
    for folder in runs.iterdir():
        shutil.rmtree(folder)
    for index in (1, 2, 4):
        make_run(runs / f"run-default-{index}", each_target("relu"), shard=(index, 4))
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 2
    assert "not among the runs: shard 3/4 of default, seed 0; give their folders, too" in summary
    assert "; without shard 3/4 of default, seed 0" in summary.splitlines()[0]

    make_run(runs / "run-default-3", each_target("relu"), shard=(3, 4))
    expected = "default-1 default-2 default-3 default-4"
    done, _, summary = night(FILE_ISSUES="false", EXPECTED=expected)
    assert (done.returncode, "Trouble" in summary) == (0, False), summary
    done, _, summary = night(FILE_ISSUES="false", EXPECTED=f"{expected} et120-1 newest-1")
    assert done.returncode == 2
    assert "et120-1 left nothing" in summary
    assert "newest" not in summary

    damages = (
        lambda text: text[:-20],
        lambda text: text.splitlines(True)[0],
        lambda text: f"{text[:40]}!{text[40:]}",
        lambda text: "",
    )
    for index, damage in enumerate(damages, 1):
        results = runs / f"run-default-{index}" / "results.jsonl"
        results.write_text(damage(results.read_text()))
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 2
    for index in (1, 2, 3, 4):
        assert f"run-default-{index}/results.jsonl" in summary

    shutil.rmtree(runs / "run-default-4")
    make_run(runs / "run-default-4", each_target("relu"), shard=(4, 4), state="interrupted")
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 2
    assert "run-default-4: was interrupted after 2 cases" in summary


def test_no_run_at_all_is_red(tmp_path, night):
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "runs").mkdir()
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 2
    assert "no run at all" in summary


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


def test_a_line_that_could_not_be_installed_is_told_and_counts_unless_it_is_tolerated(tmp_path, night):
    folder = tmp_path / "runs" / "run-prerelease-1"
    folder.mkdir()
    (folder / "environment.log").write_text("collecting\nERROR: no matching distribution for `executorch`\n")
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 1
    assert "prerelease-1 made no run: ERROR: no matching distribution for executorch" in summary
    folder.rename(tmp_path / "runs" / "run-et141-1")
    done, _, summary = night(FILE_ISSUES="false")
    assert done.returncode == 2
    assert "run-et141-1: is no run's folder" in summary
    assert "2 new bugs" in summary
