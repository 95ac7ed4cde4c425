"""Cases of one graph follow each other on one worker process."""

import sys

import msgspec

from generators.cases import draw_block
from harness.campaign.campaign import write_case
from harness.workers.pool import Pool
from harness.workers.processes import Limits
from harness.workers.protocol import Task

STAND_IN = (sys.executable, "-m", "tests.stand_in")


[CASE] = draw_block(0, 0, 1, ("TOSA-1.0+INT",))[0]


def tasks(folder, graphs, targets, note="fine"):
    for graph in range(graphs):
        for target in range(targets):
            text = note if (graph, target) == (0, 0) else "wait 0.2"
            case = msgspec.structs.replace(CASE, note=text)
            yield Task(case=str(write_case(case, folder / f"{graph}-{target}")), graph=str(graph))


def workers_by_graph(results, targets):
    pids = [result.fallback[0] for result in results]
    return [set(pids[place : place + targets]) for place in range(0, len(pids), targets)]


def test_one_worker_runs_a_graph_while_there_is_something_else_to_do(tmp_path):
    with Pool(2, limits=Limits(), command=STAND_IN) as pool:
        made = list(tasks(tmp_path, 8, 3))
        results = list(pool.run(made))
    assert [result.case for result in results] == [task.case for task in made]
    # at the beginning and at the end both workers may be on one graph
    assert all(len(pids) == 1 for pids in workers_by_graph(results, 3)[2:-2])


def test_a_worker_without_work_takes_over_a_graph_whose_worker_is_busy(tmp_path):
    with Pool(2, limits=Limits(), command=STAND_IN) as pool:
        [pids] = workers_by_graph(list(pool.run(tasks(tmp_path, 1, 3, "wait 0.5"))), 3)
    assert len(pids) == 2


def test_a_graph_whose_worker_dies_goes_on_in_another(tmp_path):
    with Pool(1, limits=Limits(), command=STAND_IN) as pool:
        results = list(pool.run(tasks(tmp_path, 2, 3, "signal SIGSEGV")))
    assert [len(result.findings) for result in results] == [1, 0, 0, 0, 0, 0]
    assert len({result.fallback for result in results[1:]}) == 1
