"""Cases of one graph follow each other on one worker, and nobody waits."""

import pytest

from harness.workers.affinity import next_case, worker_for


@pytest.mark.parametrize(
    ("waiting", "idle", "busy", "place"),
    [
        (["a", "a", "b"], [], [], 0),
        (["a", "b", "b"], ["b"], [], 1),  # a worker has just run the graph
        (["a", "a", "b"], [], ["a"], 2),  # another worker is on the first graph
        (["a", "a"], ["z"], ["a"], 0),  # nothing else is left: nobody idles
        (["", "a"], [""], [""], 0),  # cases without a graph go in order
        (["a", "b"], ["a"], ["a"], 1),  # one worker idles on the graph, another still runs it
    ],
)
def test_the_next_case(waiting, idle, busy, place):
    assert next_case(waiting, idle, busy) == place


@pytest.mark.parametrize(
    ("graph", "idle", "waiting", "place"),
    [
        ("a", ["b", "a"], ["b"], 1),
        ("c", ["a", "b"], ["a"], 1),  # not the one that somebody else's case is about to ask for
        ("c", ["a", "b"], ["a", "b"], 0),
        ("", ["", "a"], ["a"], 0),
    ],
)
def test_the_worker_that_takes_it(graph, idle, waiting, place):
    assert worker_for(graph, idle, waiting) == place
