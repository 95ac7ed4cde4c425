"""A campaign with real workers, of which some die: by their cases, and killed from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.campaign.campaign import Options, graph_cases, run_campaign
from harness.campaign.run_folder import Run, read_run
from harness.campaign.summary import Tally
from harness.case.case import case_digest
from harness.workers.pool import Pool
from harness.workers.processes import Limits
from harness.workers.protocol import CaseResult

GRAPHS = 8
CHAOS = (sys.executable, "-m", "tests.chaos_worker")
# a worker with torch and executorch holds about 0.7 GiB; a drawn case takes seconds
LIMITS = Limits(seconds=25.0, memory=2 << 30)


def campaign(folder: Path, command: tuple[str, ...]) -> tuple[Tally, Run]:
    options = Options(("TOSA-1.0+INT",), GRAPHS, seed=5, jobs=2, out=folder, probes="none")
    tally = run_campaign(options, (), lambda *_: None, workers=lambda jobs: Pool(jobs, command=command, limits=LIMITS))
    return tally, read_run(folder)


def told(result: CaseResult) -> set[str]:
    return {finding.bucket for finding in result.findings}


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tally, Run, dict[str, str]]:
    """A campaign in which four cases end their worker, while a thread kills workers that have other ones."""
    folder = tmp_path_factory.mktemp("chaos")
    digests = [
        case_digest(cases[0]) for _, cases in graph_cases(Options(("TOSA-1.0+INT",), GRAPHS, seed=5, out=folder))
    ]
    planted = dict(zip(digests[1::2], ("segfault", "exit", "hang", "hog"), strict=True))
    over = threading.Event()
    kills = 0

    def kill_from_outside() -> None:
        nonlocal kills
        while kills < 2 and not over.wait(9):
            found = subprocess.run(
                ["pgrep", "-f", "-P", str(os.getpid()), "tests.chaos_worker"], capture_output=True, text=True
            ).stdout.split()
            if found:
                os.kill(int(found[0]), signal.SIGKILL)
                kills += 1

    killer = threading.Thread(target=kill_from_outside)
    os.environ["ARMDIFF_CHAOS"] = json.dumps(planted)
    killer.start()
    try:
        tally, run = campaign(folder, CHAOS)
    finally:
        over.set()
        killer.join()
        del os.environ["ARMDIFF_CHAOS"]
    assert kills
    return tally, run, planted


def test_every_case_is_counted_once(disturbed: tuple[Tally, Run, dict[str, str]]) -> None:
    tally, run, _ = disturbed
    assert (tally.graphs, tally.cases) == (GRAPHS, GRAPHS)
    assert [item.number for item in run.done] == [*range(GRAPHS)]
    assert run.info.state == "done"
    assert tally.stopped is None or tally.stopped == ""


def test_each_death_is_a_finding_with_its_case_and_stage(disturbed: tuple[Tally, Run, dict[str, str]]) -> None:
    _, run, planted = disturbed
    kinds = {"segfault": "SIGSEGV", "exit": "exit-status-7", "hang": "Hang", "hog": "OutOfMemory"}
    found = {}
    for item in run.done:
        way = planted.get(Path(item.result.case).stem)
        if way is not None:
            assert len(item.result.findings) == 1, (way, item.result)
            [finding] = item.result.findings
            assert finding.oracle == "crash"
            assert finding.stage == "lower"
            assert Path(finding.case).exists()
            found[way] = finding.bucket
    assert set(found) == set(kinds)
    for way, kind in kinds.items():
        assert kind.lower() in found[way].lower().replace(" ", "-"), found[way]
    assert len(set(found.values())) == len(kinds), "each has a bucket of its own"


def test_what_ran_beside_them_is_as_without(disturbed: tuple[Tally, Run, dict[str, str]], tmp_path: Path) -> None:
    _, run, planted = disturbed
    _, calm = campaign(tmp_path, (sys.executable, "-m", "harness.workers.worker"))
    expected = {item.number: told(item.result) for item in calm.done}
    undisturbed = [item for item in run.done if Path(item.result.case).stem not in planted]
    assert len(undisturbed) == GRAPHS - len(planted)
    for item in undisturbed:
        assert told(item.result) == expected[item.number]
    assert any("ran" in item.result.legs.values() for item in undisturbed)


def test_no_worker_outlives_the_campaign(disturbed: tuple[Tally, Run, dict[str, str]]) -> None:
    left = subprocess.run(["pgrep", "-f", "-P", str(os.getpid()), "tests.chaos_worker"], capture_output=True, text=True)
    assert left.stdout == ""
