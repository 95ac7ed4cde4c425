"""A worker without torch: does what a case's note, or $STAND_IN, says.

As a process (``python -m tests.stand_in``) it dies, hangs and grows as told, and with ``fork`` its forks do so.
``InProcess`` is a pool of such workers that starts none, and says what a pool says of one that died.
"""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from harness.case.reading import read_case
from harness.evidence.observation import Unjudged
from harness.workers.deaths import finding_of_death
from harness.workers.forks import passed_on
from harness.workers.frames import receive, send
from harness.workers.processes import Death
from harness.workers.protocol import CaseResult, Run, Stage

SAID = "Assertion `x' failed\n"
"""The last words of a worker that a signal ends."""
FOUND = Death("exit status 5", "lower", "")
"""What a case shows whose note says ``find``, unless it is corrected."""


class InProcess:
    """Answers in this process, one case after the other; the only deed that it knows is to die by a signal."""

    def __init__(self, jobs=1):
        self.jobs = jobs

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """There is nothing to end."""

    def run(self, tasks):
        return map(self.run_one, tasks)

    def run_one(self, task):
        word, _, rest = told(task).partition(" ")
        if not word:
            return CaseResult(case=task.case, legs={"eager": "ran"})
        assert word == "signal", word
        return CaseResult(case=task.case, findings=(finding_of_death(task.case, Death(rest, "lower", SAID)),))


def told(task):
    """What a task's case asks for."""
    return read_case(Path(task.case)).note or os.environ.get("STAND_IN", "")


def main():
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    send(answers, Stage("ready"))
    if sys.argv[1:] != ["fork"]:
        serve(sys.stdin.buffer, answers)
        return
    task = receive(sys.stdin.buffer)
    while task is not None:
        task = passed_on(task, sys.stdin.buffer, answers, serve)


def serve(questions, answers):
    while (task := receive(questions)) is not None:
        send(answers, Stage("lower"))
        note = told(task)
        for deed in note.split(" & "):
            if deed.startswith("run "):
                send(answers, Run(deed.removeprefix("run ")))
                send(answers, Stage("prove"))
            if deed.startswith("prove "):  # does the rest when it tries a correction
                if task.known:
                    send(answers, Run("with correction x"))
                    act(deed.removeprefix("prove "), Path(task.case))
            else:
                act(deed, Path(task.case))
        shown = "find" in note.split(" & ") and not task.corrections
        findings = (finding_of_death(task.case, FOUND),) if shown else ()
        unjudged = (Unjudged(what="aten.sin", why="no rule of rounding", outputs=(0,)),) if note == "unjudged" else ()
        pid = (str(os.getpid()),)
        result = CaseResult(case=task.case, legs={"eager": "ran"}, fallback=pid, unjudged=unjudged, findings=findings)
        send(answers, result)


def act(note, file):
    word, _, rest = note.partition(" ")
    if word == "say":
        sys.stderr.write(f"{rest}\n")
        sys.stderr.flush()
    elif word == "litter":  # leaves a folder that nobody deletes, and says where
        act(f"say {tempfile.mkdtemp(prefix='litter-')}", file)
    elif word == "once":  # does the rest the first time only
        mark = file.with_suffix(".mark")
        if not mark.exists():
            mark.touch()
            act(rest, file)
    elif word == "exit":
        os._exit(int(rest))
    elif word == "signal":
        sys.stderr.write(SAID)
        os.kill(os.getpid(), getattr(signal, rest))
    elif word == "wait":
        time.sleep(float(rest))
    elif word == "beside":  # a file that must lie beside the case, and what it holds
        name, content = rest.split(" ")
        if (file.parent / name).read_bytes() != content.encode():
            os._exit(9)
    elif word == "kill-node":  # who started this worker, and this worker with it
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    elif word == "hang":
        time.sleep(60)
    elif word == "grow":
        held = bytearray(600 << 20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(60)


if __name__ == "__main__":
    main()
