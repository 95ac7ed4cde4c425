"""What goes on: lines of a log, the live line, and how long it may take, by a clock of the test's own."""

import io

import pytest
from rich.console import Console

from harness.cli.stages import Estimate, Stages
from harness.workers.protocol import CaptureTask, Task

TASKS = {name: Task(case=f"{name}.json") for name in ("one", "two")}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stages(clock):
    return Stages(lambda task: task.case.removesuffix(".json"), Console(file=io.StringIO()), clock)


def test_a_log_is_told_what_takes_ten_seconds_and_again_when_that_has_doubled(stages, clock):
    stages.told(TASKS["one"], "lower", "")
    told = {}
    for clock.now in (9.0, 10.0, 15.0, 20.0, 39.0, 40.0):
        told[clock.now] = stages.due()
    assert {now: lines for now, lines in told.items() if lines} == {
        10.0: ["one: partitioning and Arm passes for 10 s; 10 s in all"],
        20.0: ["one: partitioning and Arm passes for 20 s; 20 s in all"],
        40.0: ["one: partitioning and Arm passes for 40 s; 40 s in all"],
    }


def test_a_stage_that_is_over_sooner_is_not_told(stages, clock):
    stages.told(TASKS["one"], "lower", "")
    clock.now = 9.0
    stages.told(TASKS["one"], "leg:eager", "again")
    clock.now = 18.0
    assert stages.due() == []
    clock.now = 19.0
    assert stages.due() == ["one, again: running eager for 10 s; 19 s in all"]
    stages.told(TASKS["one"], "", "again")
    clock.now = 99.0
    assert stages.due() == []


def test_the_live_line_shows_the_oldest_case_and_what_is_left(stages, clock):
    assert "starting workers" in stages.__rich__()
    stages.expect(3, jobs=2, guess=30.0)
    stages.told(TASKS["one"], "lower", "with correction neg-rescaled")
    clock.now = 10.0
    stages.told(TASKS["two"], "vela", "")
    text, *times = stages.__rich__().split("; ")
    assert text == "one, with correction neg-rescaled: partitioning and Arm passes for 10 s (and 1 more)"
    assert times == ["10 s in all, about 40 s left"]
    clock.now = 20.0
    stages.told(TASKS["one"], "", "")  # it took 20 s, not 30: two times 20, of which 10 are over, by two workers
    assert stages.__rich__() == "two: compiling with Vela for 10 s; 20 s in all, about 15 s left"


def test_capturing_counts_in_no_estimate(stages, clock):
    stages = Stages(lambda task: "capture", Console(file=io.StringIO()), clock)
    task = CaptureTask(file="m.py", folder="f", target="TOSA-1.0+INT", recipe="a8w8")
    stages.told(task, "capture", "")
    stages.told(task, "", "")
    assert stages.estimate.took == []


@pytest.mark.parametrize(
    ("estimate", "running", "left"),
    [
        (Estimate(), 5.0, None),
        (Estimate(2), 5.0, None),
        (Estimate(2, guess=10.0), 5.0, 15.0),
        (Estimate(2, guess=10.0), 25.0, None),  # late: no telling
        (Estimate(3, guess=10.0, took=[4.0]), 0.0, 8.0),
        (Estimate(1, took=[4.0]), 0.0, None),
    ],
)
def test_an_estimate_rests_on_cases_that_are_done_or_on_a_guess(estimate, running, left):
    assert estimate.left(running) == left
