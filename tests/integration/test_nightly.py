"""How a night ends, without GitHub: its verdict, the issues that it files and closes; and a rehearsal of all of it."""

import json
import os
import re
import shutil

import pytest

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from tests.integration.nightly_scripts import ARMDIFF, executable, script
from tests.unit.reporting_runs import chain_case, each_target, finding, make_run

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
