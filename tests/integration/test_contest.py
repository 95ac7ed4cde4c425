"""Contestants of a benchmark are processes, which are asked in turn."""

import sys

from harness.case.case import encode_case
from harness.cli.benchmark.contest import Contest, Contestant
from harness.cli.benchmark.subjects import Subject
from harness.workers.processes import Limits, start_worker

CHILD = """
import os, sys
from pathlib import Path
from harness.workers.frames import receive, send
from harness.workers.protocol import Stage, Timed
out = os.fdopen(os.dup(1), "wb")
send(out, Stage("ready"))
while (task := receive(sys.stdin.buffer)) is not None:
    log = Path(task.cases[0]).with_name("log")
    log.write_text(log.read_text() + sys.argv[1] if log.exists() else sys.argv[1])
    if sys.argv[1] == "b" and len(log.read_text()) == 5:
        os._exit(7)
    send(out, Timed(wall=2.0, processor=1.0, stages={"lower": 1.5}, resident=42))
"""


def test_a_contest_asks_in_turn_and_survives_a_death(tmp_path):
    from harness.case.case import Case, Distribution, Graph, Input, Node

    graph = Graph(
        inputs=(Input(name="x", shape=(1, 4)),),
        nodes=(Node(name="n0", operator="relu", inputs=("x",)),),
        outputs=("n0",),
    )
    uniform = Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    (tmp_path / "case.json").write_bytes(encode_case(Case(graph=graph, calibration={"x": uniform})))
    subject = Subject("one", (tmp_path / "case.json",))

    def start(contestant):
        return start_worker(Limits(), command=(sys.executable, "-c", CHILD, contestant.name))

    with Contest([Contestant("a", "armdiff"), Contestant("b", "armdiff")], start) as contest:
        contest.warm_up(subject)
        samples = [*contest.run([subject, subject], 2)]
    assert (tmp_path / "log").read_text() == "ab" + "ab" + "ba" + "ba" + "ab"
    assert "".join(item.contestant for item in samples) == "ab" + "ba" + "ba" + "ab"
    died = "start: the process ended with exit status 7"
    assert [item.failed for item in samples] == [{}, {}, {"TOSA-1.0+INT": died}, {}, {}, {}, {}, {}]
    assert (samples[0].wall, samples[0].processor, samples[0].stages, samples[0].resident) == (2, 1, {"lower": 1.5}, 42)
    assert contest.ready["a"] > 0
