"""Workers that die, hang and grow, with a stand-in for the real one; and what a dead one's output is reduced to.

Where nothing depends on how a process began or on what it weighs, it is a fork of this one.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import msgspec
import pytest

from generators.cases import draw_block
from harness.campaign.campaign import write_case
from harness.case.errors import CannotRun
from harness.triage.known import KnownBug
from harness.workers.deaths import finding_of_death
from harness.workers.pool import Pool
from harness.workers.processes import Limits, _environment
from harness.workers.protocol import Task
from tests.forked import forked_workers
from tests.stand_in import FOUND, SAID

STAND_IN = (sys.executable, "-m", "tests.stand_in")
[CASE] = draw_block(0, 0, 1, ("TOSA-1.0+INT",))[0]


@pytest.fixture
def tasks(tmp_path):
    """``tasks(note…)``: cases that make the stand-in do what their notes say."""

    def made(*notes):
        for place, note in enumerate(notes):
            case = msgspec.structs.replace(CASE, note=note)
            yield Task(case=str(write_case(case, tmp_path / str(place))))

    return made


@pytest.fixture
def forked():
    """Workers are forks of this process."""
    with forked_workers():
        yield


def pool(jobs=1, **limits):
    return Pool(jobs, limits=Limits(**limits), command=STAND_IN)


def test_whoever_asks_is_told_stages_and_the_end(forked, tasks):
    told = []
    with Pool(1, command=STAND_IN, told=lambda task, stage, run: told.append((task.case, stage, run))) as workers:
        [task] = tasks("run again")
        workers.run_one(task)
    assert told == [(task.case, "lower", ""), (task.case, "prove", "again"), (task.case, "", "again")]


def buckets(findings):
    return [(item.kind, item.stage) for item in findings]


@pytest.mark.parametrize(
    ("words", "note", "kind", "message"),
    [
        ((), "signal SIGSEGV", "SIGSEGV", "Assertion `x' failed"),
        ((), "signal SIGABRT", "SIGABRT", "Assertion `x' failed"),
        ((), "exit 0", "exit status 0", "no native output"),
        ((), "exit 3", "exit status 3", "no native output"),
        ((), "hang", "Hang", "no answer within the time limit"),
        ((), "grow", "OutOfMemory", "the process grew beyond the memory limit"),
        (("fork",), "signal SIGABRT", "SIGABRT", "Assertion `x' failed"),
        (("fork",), "exit 0", "exit status 0", "no native output"),
        (("fork",), "grow", "OutOfMemory", "the process grew beyond the memory limit"),
    ],
)
def test_each_way_to_die_is_a_finding_and_the_next_case_runs(request, tasks, words, note, kind, message):
    if note not in ("signal SIGSEGV", "grow"):
        request.getfixturevalue("forked")
    # only what hangs may run into the time limit: on a busy machine the others take seconds
    limits = {"seconds": 1.5 if note == "hang" else 120.0, **({"memory": 400 << 20} if note == "grow" else {})}
    with Pool(1, limits=Limits(**limits), command=(*STAND_IN, *words)) as workers:
        died, fine = workers.run(tasks(note, "fine"))
    [finding] = died.findings
    assert (finding.oracle, finding.stage) == ("crash", "lower")
    assert kind in finding.message
    assert message in finding.message
    assert fine.legs == {"eager": "ran"}
    assert fine.findings == ()


@pytest.mark.parametrize("note", ["once signal SIGSEGV", "once exit 1"])
def test_a_death_that_does_not_repeat_is_told_beside_the_answer(forked, tasks, note):
    with pool() as workers:
        [result] = workers.run(tasks(note))
    assert result.legs == {"eager": "ran"}
    assert result.findings == ()
    assert [item.oracle for item in result.unrepeated] == ["crash"]


def test_a_death_that_repeats_with_other_words_is_a_silent_one(forked, tasks):
    with pool() as workers:
        noisy, silent = workers.run(tasks("once say what(): noise & signal SIGSEGV", "exit 3"))
    [finding] = noisy.findings
    assert noisy.unrepeated == ()
    assert finding.bucket == silent.findings[0].bucket.replace("exit-status-3", "SIGSEGV")
    assert "what(): noise" in finding.detail


def test_two_deaths_of_different_kinds_are_told_and_do_not_count(forked, tasks):
    with pool() as workers:
        [result] = workers.run(tasks("once exit 4 & signal SIGSEGV"))
    assert result.findings == ()
    assert [item.message.split(" ")[0] for item in result.unrepeated] == ["exit", "SIGSEGV"]


def known_bug(tasks, **words):
    """A bug that what the stand-in finds resembles, and that a correction takes away."""
    [task] = tasks("find")
    return KnownBug(entry="e", bucket=finding_of_death(task.case, FOUND).bucket, corrections=("x",), **words)


def test_a_death_of_a_correction_says_nothing_about_the_case(forked, tasks):
    bug = known_bug(tasks)
    with pool() as workers:
        [clean, shows] = workers.run(
            msgspec.structs.replace(task, known=(bug,))
            for task in tasks("prove signal SIGABRT", "find & prove signal SIGABRT")
        )
    assert (clean.findings, clean.unrepeated, clean.legs) == ((), (), {"eager": "ran"})
    [finding] = shows.findings
    assert (finding.stage, finding.state, finding.entry) == ("lower", "known", "e"), "its proof is made all the same"
    assert shows.unrepeated == ()


def test_a_death_of_a_correction_leaves_new_what_nothing_proves(forked, tasks):
    bug = known_bug(tasks, operators=("no", "such", "operators"))
    with pool() as workers:
        [result] = workers.run(
            msgspec.structs.replace(task, known=(bug,)) for task in tasks("find & prove signal SIGABRT")
        )
    assert [(item.stage, item.state) for item in result.findings] == [("lower", "new")]


def test_a_death_of_a_second_look_counts(forked, tasks):
    with pool() as workers:
        [result] = workers.run(tasks("run again & signal SIGABRT"))
    assert [item.kind for item in result.findings] == ["exception"]


def test_a_worker_that_is_killed_from_outside_says_nothing_about_its_case(forked, tasks):
    with pool() as workers:
        [result] = workers.run(tasks("once signal SIGKILL"))
    assert (result.findings, result.unrepeated) == ((), ())
    assert result.legs == {"eager": "ran"}


def test_a_case_whose_workers_are_always_killed_is_a_finding(forked, tasks):
    with pool() as workers:
        [result] = workers.run(tasks("signal SIGKILL"))
    assert "SIGKILL" in result.findings[0].message
    assert "killed from outside" in result.findings[0].message


def test_what_a_dead_worker_leaves_in_its_temporary_folder_goes_with_it(forked, tasks, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with pool() as workers:
        died, fine = workers.run(tasks("litter & signal SIGSEGV", "fine"))
    [finding] = died.findings
    assert f"{scratch}/armdiff-worker-" in finding.detail
    assert "litter-" in finding.detail
    assert fine.findings == ()
    assert [*scratch.iterdir()] == []


FREED = """\
import os
page = lambda: int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
before = page()
bytearray(16 << 20)  # glibc keeps what is as large as the largest that was freed
tensors = [b"x" * size for _ in range(20) for size in (8 << 20, 1 << 12)]
del tensors[::2]
print(page() - before)
"""


@pytest.mark.parametrize("ours", [False, True], ids=["as Python is", "as a worker is"])
def test_what_a_worker_frees_of_large_tensors_goes_back_to_the_system(ours, tmp_path):
    environment = _environment(None, str(tmp_path)) if ours else {}
    held = subprocess.check_output([sys.executable, "-S", "-c", FREED], env=environment)
    assert (int(held) < 40) == ours  # MiB of 160


def of_graphs(tasks, graphs):
    return [msgspec.structs.replace(task, graph=graph) for task, graph in zip(tasks, graphs, strict=True)]


def test_each_graph_has_a_fork_of_its_worker_and_so_has_each_case_of_none(tasks):
    with forked_workers() as started, Pool(1, command=(*STAND_IN, "fork")) as workers:
        results = [workers.run_one(task) for task in of_graphs(tasks(*["fine"] * 6), ["a", "a", "b", "a", "", ""])]
        [worker] = started
    pids = [int(result.fallback[0]) for result in results]
    assert pids[0] == pids[1]
    assert worker.pid not in pids
    assert len(set(pids)) == 5


def test_a_worker_lives_on_where_its_fork_dies(tasks):
    notes = ["fine", "say before & signal SIGSEGV", "once exit 3", "fine"]
    with forked_workers() as started, Pool(1, command=(*STAND_IN, "fork")) as workers:
        fine, dies, once, after = workers.run(of_graphs(tasks(*notes), ["a", "a", "b", "b"]))
        assert len(started) == 1
    assert fine.legs == once.legs == after.legs == {"eager": "ran"}
    [crash] = dies.findings
    assert (crash.oracle, crash.stage) == ("crash", "lower")
    assert "SIGSEGV" in crash.bucket
    assert SAID.strip() in crash.message
    [unrepeated] = once.unrepeated
    assert "exit-status-3" in unrepeated.bucket


def test_closing_ends_workers_that_are_busy_and_starts_no_others(forked, tasks):
    with pool(jobs=2) as workers:
        waiting = threading.Thread(target=lambda: [*workers.run(tasks("hang", "hang", "hang"))], daemon=True)
        waiting.start()
        while len(workers._all) < 2:
            time.sleep(0.01)
        pids = [worker.process.pid for worker in workers._all]
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert workers._all == []


def test_a_worker_that_cannot_start_is_one_clear_line(tasks):
    command = (sys.executable, "-c", "import sys; sys.exit('no torch here')")
    with Pool(1, command=command) as workers, pytest.raises(CannotRun, match=r"exit status 1\): no torch here; run"):
        [*workers.run(tasks("fine"))]


def test_a_worker_ends_with_its_parent(tmp_path):
    script = (
        "import sys, time\n"
        "from harness.workers.processes import Limits, start_worker\n"
        "worker = start_worker(Limits(), command=(sys.executable, '-c', sys.argv[1]))\n"
        "print(worker.process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    child = (
        "import ctypes, os, signal, time\n"
        "from harness.workers.frames import send\n"
        "from harness.workers.protocol import Stage\n"
        "from harness.case.interrupts import die_with_parent\n"
        "die_with_parent()\n"
        "send(os.fdopen(1, 'wb'), Stage('ready'))\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, child], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until = time.monotonic() + 20
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.02)
        pytest.fail("the worker outlived its parent")


def test_a_worker_s_stack_has_an_end_where_the_machine_s_has_none():
    script = (
        "import resource\n"
        "from harness.workers.worker import STACK, limit_stack\n"
        "limit_stack()\n"
        "print(resource.getrlimit(resource.RLIMIT_STACK)[0] <= STACK)\n"
    )
    for limit in ("unlimited", "4096"):
        shell = ["bash", "-c", f'ulimit -S -s {limit}; exec "$@"', "bash", sys.executable, "-c", script]
        assert subprocess.run(shell, capture_output=True, text=True, check=True).stdout == "True\n"


def test_what_an_earlier_case_printed_is_not_a_death_s_output(forked, tasks):
    with pool() as workers:
        _, died = workers.run(tasks("say FATAL of somebody else", "exit 7"))
    [finding] = died.findings
    assert finding.message.count("no native output") == 1
    assert "FATAL" not in finding.detail
