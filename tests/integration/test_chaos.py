"""A campaign with workers of which some die: by their cases, and killed from outside. All are forks of this process."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from harness.campaign.campaign import Options, graph_cases, run_campaign, write_case
from harness.campaign.run_folder import Run, read_run
from harness.campaign.summary import Tally
from harness.case.case import case_digest
from harness.case.memory import resident
from harness.workers.frames import Question
from harness.workers.pool import Pool
from harness.workers.processes import WORKER, Limits, Listener
from harness.workers.protocol import CaseResult, Task
from tests.forked import ForkedProcess, forked_workers

GRAPHS, KILLS = 8, 2
CHAOS = (sys.executable, "-m", "tests.chaos_worker")
SECONDS = 10.0
"""A hang's limit: a drawn case takes a second or two."""


def campaign(folder: Path, told: Listener) -> tuple[Tally, Run]:
    options = Options(("TOSA-1.0+INT",), GRAPHS, seed=5, jobs=2, out=folder, probes="none")
    limits = Limits(SECONDS, memory=resident(os.getpid()) + (1 << 30))
    pool = partial(Pool, command=CHAOS, limits=limits, told=told)
    with forked_workers() as workers:
        tally = run_campaign(options, (), lambda *_: None, workers=pool)
        assert workers
        assert [worker.pid for worker in workers if worker.returncode is None] == [], "a worker outlives the campaign"
    return tally, read_run(folder)


def told(result: CaseResult) -> set[str]:
    return {finding.bucket for finding in result.findings}


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory, first_cases: None) -> tuple[Tally, Run, dict[str, str]]:
    """A campaign in which four cases end their worker, and two workers are killed while they have other ones."""
    folder = tmp_path_factory.mktemp("chaos")
    digests = [
        case_digest(cases[0]) for _, cases in graph_cases(Options(("TOSA-1.0+INT",), GRAPHS, seed=5, out=folder))
    ]
    # the hang comes first: the rest runs beside it
    planted = dict(zip(digests[1::2], ("hang", "segfault", "exit", "hog"), strict=True))
    killed: list[int] = []

    def kill_from_outside(task: Question, stage: str, run: str) -> None:
        if stage == "lower" and len(killed) < KILLS and Path(task.case).stem not in planted:
            killed.append([worker.pid for worker in ForkedProcess.all if worker.returncode is None][-1])
            os.kill(killed[-1], signal.SIGKILL)

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ARMDIFF_CHAOS", json.dumps(planted))
        tally, run = campaign(folder, kill_from_outside)
    assert len(killed) == KILLS
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


def test_what_ran_beside_them_is_as_without(disturbed: tuple[Tally, Run, dict[str, str]]) -> None:
    _, run, planted = disturbed
    undisturbed = [item.result for item in run.done if Path(item.result.case).stem not in planted]
    assert len(undisturbed) == GRAPHS - len(planted)
    with forked_workers(), Pool(1, command=WORKER) as pool:
        calm = [*pool.run([Task(case=item.case, probes="none") for item in undisturbed])]
    assert [told(item) for item in undisturbed] == [told(item) for item in calm]
    assert any("ran" in item.legs.values() for item in undisturbed)


def test_a_fork_of_a_worker_says_what_the_worker_says(
    tmp_path: Path, first_cases: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(("TOSA-1.0+INT", "ethos-u55-128"), 2, seed=5, out=tmp_path)
    tasks = [
        Task(case=str(write_case(case, tmp_path)), graph=str(place), probes="none")
        for place, cases in graph_cases(options)
        for case in cases
    ]
    answers = []
    for first in (0, len(tasks)):
        monkeypatch.setattr("harness.workers.forks.FIRST", first)
        with forked_workers() as started, Pool(1, command=WORKER) as pool:
            answers.append([(item.legs, told(item)) for item in pool.run(tasks)])
            [worker] = pool._idle
            assert (worker.serves == started[0].pid) == bool(first)
    assert answers[0] == answers[1]
    assert len(tasks) == 4
    assert all("ran" in legs.values() for legs, _ in answers[0])
