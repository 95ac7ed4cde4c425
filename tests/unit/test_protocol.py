"""Frames survive the pipe; a torn frame is an end, not an error."""

import io

from harness.evidence.observation import Unjudged
from harness.workers.forks import FIRST, needs_fork
from harness.workers.frames import graph_of, receive, send
from harness.workers.protocol import CaseResult, EmitTask, Emitted, Stage, Task


def test_messages_survive_the_pipe():
    stream = io.BytesIO()
    messages = [Stage("lower"), Task(case="c.json", legs=("eager",)), CaseResult(case="c", seconds={"a": 0.5})]
    lost = Unjudged(what="aten.sin", why="no rule of rounding", outputs=(0, 2), parts=3, of=4)
    messages += [CaseResult(case="c", unjudged=(lost,))]
    messages += [EmitTask(case="c.json", target="ethos-u55-128"), Emitted(program=b"\0ET12\xff")]
    for message in messages:
        send(stream, message)
    stream.seek(0)
    assert [receive(stream) for _ in messages] == messages
    assert receive(stream) is None


def test_a_torn_frame_is_the_end():
    stream = io.BytesIO()
    send(stream, Task(case="c.json"))
    data = stream.getvalue()
    for cut in (2, 5, len(data) - 1):
        assert receive(io.BytesIO(data[:cut])) is None


def test_a_worker_runs_its_first_graphs_itself_but_no_network():
    few, network = Task(case="c.json"), Task(case="c.json", apart=True)
    assert [needs_fork(few, graphs) for graphs in (1, FIRST, FIRST + 1)] == [False, False, True]
    assert needs_fork(network, 1)
    assert graph_of(Task(case="c.json", graph="3", apart=True)) == "", "no other case of its graph comes to its fork"
