"""The nightly job: its workflow is consistent, and its scripts do what they say without GitHub."""

import configparser
import re
from pathlib import Path

import pytest
import yaml

from harness.campaign.mutating import check_sources
from harness.case.target import parse_target
from harness.compat.releases import LINES, PACKAGES, line_named

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OVERRUN = 12
"""Minutes that .ci/nightly/shard leaves a run beyond its budget."""


@pytest.fixture(name="nightly", scope="module")
def read_nightly():
    return yaml.safe_load((ROOT / ".github" / "workflows" / "nightly-fuzz.yml").read_text())


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_nothing_from_outside_is_written_into_a_shell():
    for file in WORKFLOWS:
        assert not [step["run"] for step in steps(yaml.safe_load(file.read_text())) if "${{" in step.get("run", "")]


def test_permissions_are_the_least():
    for file in WORKFLOWS:
        workflow = yaml.safe_load(file.read_text())
        assert workflow["permissions"] == {"contents": "read"}
        more = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
        files_issues = {"contents": "read", "issues": "write"}
        assert more == (dict.fromkeys(("changes", "verdict"), files_issues) if "nightly" in file.name else {})


def test_every_line_has_all_its_shards(nightly):
    shard = nightly["jobs"]["shard"]
    found = {}
    for item in shard["strategy"]["matrix"]["include"]:
        if "shard" not in item:
            found.setdefault((item["line"], item["of"]), []).append(item["number"])
    assert len({line for line, _ in found}) == len(found)
    assert all(sorted(numbers) == [*range(1, of + 1)] for (_, of), numbers in found.items())
    assert {"default", "newest", "prerelease"} <= {line for line, _ in found}
    assert shard["env"]["SHARD"] == "${{ matrix.shard || format('{0}/{1}', matrix.number, matrix.of) }}"
    assert "--shard \"$SHARD\"" in (ROOT / ".ci/nightly/shard").read_text()  # fmt: skip
    assert shard["strategy"]["fail-fast"] is False


def test_float_models_and_mutants_have_runs_of_their_own(nightly):
    shard = nightly["jobs"]["shard"]
    own = {item["number"]: item for item in shard["strategy"]["matrix"]["include"] if "shard" in item}
    assert own.keys() == {"float", "mutated"}
    assert {(item["line"], item["shard"]) for item in own.values()} == {("default", "1/1")}
    assert not parse_target(own["float"]["more"].removeprefix("--target ")).quantized
    check_sources(own["mutated"]["more"].replace("--from ", "").split())
    assert "pytest" in (ROOT / "tox.ini").read_text().partition("[testenv:fuzz]")[2].partition("[testenv:")[0]
    assert shard["env"]["MORE"] == "${{ matrix.more }}"
    assert 'read -ra more <<<"${MORE:-}"' in (ROOT / ".ci/nightly/shard").read_text()


def test_every_line_is_an_environment_and_those_that_may_fail_are_named(nightly):
    lines = {item["line"]: item["tolerated"] for item in nightly["jobs"]["shard"]["strategy"]["matrix"]["include"]}
    tox = (ROOT / "tox.ini").read_text()
    assert all(f"[testenv:{'fuzz' if line == 'default' else line}]" in tox for line in lines)
    tolerated = {line for line, may_fail in lines.items() if may_fail}
    assert set(nightly["jobs"]["verdict"]["env"]["TOLERATED"].split()) == tolerated == {"newest", "prerelease"}


@pytest.mark.parametrize("line", [line for line in LINES if line not in ("default", "seed")])
def test_the_environment_of_a_line_has_its_packages_once_it_is_made(line):
    """``tox run --notest`` makes the environments of the nightly: it runs no command (the line seed needs one)."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    section = tox[f"testenv:{line}"]
    assert not [key for key in section if key.startswith(("commands_pre", "extras"))]
    words = re.sub(r"{\[line\](\w+)}", lambda found: tox["line"][found[1]], section["deps"]).split()
    pinned = dict(re.sub(r"\[.*\]", "", word).split("==") for word in words)
    assert {name: pinned[name] for name in line_named(line).releases} == line_named(line).releases


@pytest.mark.parametrize("line", ["newest", "prerelease"])
def test_a_line_that_follows_upstream_names_what_executorch_does_not_bring(line):
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    words = re.sub(r"#.*", "", tox[f"testenv:{line}"]["deps"]).split()
    assert {"torch", "executorch", "ethos-u-vela", "tosa-tools"} <= {*words} <= set(PACKAGES)


def test_the_verdict_expects_every_run_that_must_not_fail(nightly):
    made = nightly["jobs"]["shard"]["strategy"]["matrix"]["include"]
    names = {f"{item['line']}-{item['number']}" for item in made if not item["tolerated"]}
    assert set(nightly["jobs"]["verdict"]["env"]["EXPECTED"].split()) == names


def test_the_budget_leaves_time_for_a_verdict(nightly):
    default = int(re.search(r"'(\d+)'", nightly["env"]["MINUTES"])[1])
    choices = [int(item) for item in nightly[True]["workflow_dispatch"]["inputs"]["minutes"]["options"]]  # "on" is True
    shard = nightly["jobs"]["shard"]
    [install] = [step["timeout-minutes"] for step in shard["steps"] if step.get("name") == "Environment"]
    assert max(default, *choices) + OVERRUN + install + 15 <= shard["timeout-minutes"] <= 360
    assert '"$((seconds + 600))"' in (ROOT / ".ci/nightly/shard").read_text()


def test_what_the_verdict_reads_is_what_the_shards_upload(nightly):
    uploads = [step for step in steps(nightly) if step.get("uses", "").startswith("actions/upload-artifact@")]
    assert len(uploads) == 6
    assert all(step["if"] == "always()" for step in uploads)
    names = {step["with"]["name"] for step in nightly["jobs"]["shard"]["steps"] if step in uploads}
    assert names == {f"{kind}-${{{{ matrix.line }}}}-${{{{ matrix.number }}}}" for kind in ("run", "examples")}
    runs, examples = [step["with"] for step in steps(nightly) if step.get("uses", "").startswith("actions/download-")]
    assert runs == {"pattern": "run-*", "path": "${{ env.RUNS }}"}
    assert examples == {"pattern": "examples-*", "merge-multiple": True, "path": "examples"}
    verdict = nightly["jobs"]["verdict"]
    assert set(verdict["needs"]) == {"plan", "shard"}
    assert verdict["if"].startswith("always()")
    folders = {Path(line).name for step in verdict["steps"] if step in uploads for line in step["with"]["path"].split()}
    assert {"report", "issues", "additions"} <= folders


def test_the_vela_engine_has_a_share_of_its_own(nightly):
    engine = nightly["jobs"]["engine"]
    assert engine["strategy"]["matrix"] == {"programs": ["drawn", "mutated"]}
    assert engine["env"]["PROGRAMS"] == "${{ matrix.programs }}"
    assert not [step for step in [engine, *engine["steps"]] if step.get("continue-on-error")]
    assert [step["run"] for step in engine["steps"] if "run" in step][-1] == ".ci/nightly/engine"
    [upload] = [step["with"] for step in engine["steps"] if "upload-artifact" in step.get("uses", "")]
    assert not upload["name"].startswith(("run-", "examples-")), "the verdict reads those"
    [install] = [step["timeout-minutes"] for step in engine["steps"] if step.get("name") == "Environment"]
    choices = [int(item) for item in nightly[True]["workflow_dispatch"]["inputs"]["minutes"]["options"]]
    assert max(choices) + OVERRUN + install + 15 <= engine["timeout-minutes"] <= 360


def test_an_fvp_runs_only_where_its_licence_was_accepted(nightly):
    fvp = nightly["jobs"]["fvp"]
    assert fvp["if"] == "vars.ARM_FVP_LICENCE == 'accepted'"
    assert fvp["env"]["FVP_LICENCE"] == "${{ vars.ARM_FVP_LICENCE }}"
    runs = [step for step in fvp["steps"] if "run" in step]
    assert [step["run"] for step in runs] == [f".ci/nightly/{name}" for name in ("environment", "fvp-setup", "fvp")]
    [upload] = [step["with"] for step in fvp["steps"] if "upload-artifact" in step.get("uses", "")]
    assert not upload["name"].startswith(("run-", "examples-")), "the verdict reads those"
    assert "fvp" not in nightly["jobs"]["verdict"]["needs"]
    install = sum(step.get("timeout-minutes", 0) for step in runs)
    choices = [int(item) for item in nightly[True]["workflow_dispatch"]["inputs"]["minutes"]["options"]]
    assert max(choices) + OVERRUN + install + 15 <= fvp["timeout-minutes"] <= 360


def test_every_script_of_the_corpus_runs_and_must_not_fail(nightly):
    repros = nightly["jobs"]["repros"]
    [shell] = [step["run"] for step in repros["steps"] if "run" in step]
    assert shell == ".ci/nightly/repros"
    assert not [step for step in [repros, *repros["steps"]] if step.get("continue-on-error") or "if" in step]
    assert "-e repros" in (ROOT / shell).read_text()
    tox = (ROOT / "tox.ini").read_text().partition("[testenv:repros]")[2].partition("\n[")[0]
    assert "ARMDIFF_REPROS = 1" in tox
    assert "pytest tests/integration/test_repros.py" in tox


def test_what_one_night_shrinks_the_next_one_begins_with(nightly):
    shard, verdict = nightly["jobs"]["shard"], nightly["jobs"]["verdict"]
    [restored] = [step["with"] for step in shard["steps"] if step.get("uses", "").startswith("actions/cache/restore@")]
    [saved] = [step["with"] for step in verdict["steps"] if step.get("uses", "").startswith("actions/cache/save@")]
    assert saved == {key: restored[key] for key in ("path", "key")}
    assert restored["restore-keys"] == "examples-"
    assert saved["key"].startswith("examples-")
    assert shard["env"]["EXAMPLES"].endswith(f"/{saved['path']}")
