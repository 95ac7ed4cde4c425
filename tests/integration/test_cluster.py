"""A campaign's cases on a real Dask cluster of this machine, with the stand-in worker: no torch.

Nodes are processes under a nanny, which starts another one when a node is killed.
"""

import asyncio
import os
import queue
import signal
import sys
import threading
import time
import types
from contextlib import ExitStack

import msgspec
import pytest

from generators.cases import draw_block
from harness.campaign.campaign import Options, run_campaign, write_case
from harness.campaign.run_folder import read_run
from harness.case.errors import BadInput, CannotRun
from harness.workers.cluster.parcel import Identity, own_identity, packed_reply
from harness.workers.pool import Pool
from harness.workers.protocol import CaseResult, Task

distributed = pytest.importorskip("distributed")

from harness.workers.cluster.runner import LOST, MOST_LOSSES, ClusterPool, connected  # noqa: E402

STAND_IN = "tests.stand_in"
TARGETS = ("TOSA-1.0+INT", "ethos-u55-128")
[CASE] = draw_block(0, 0, 1, TARGETS[:1])[0]


@pytest.fixture(scope="module")
def clusters():
    """Those made so far, and what ends them."""
    with ExitStack() as ending:
        yield [], ending


def local_cluster(nodes):
    return distributed.LocalCluster(
        n_workers=nodes, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
    )


@pytest.fixture
def cluster(clusters):
    """Two nodes: those that an earlier test killed were started again, or it is another cluster."""
    made, ending = clusters
    if not made or not whole(made[-1]):  # a nanny may give up on a busy machine
        made.append(ending.enter_context(local_cluster(2)))
    return made[-1]


def whole(cluster):
    """Whether both nodes are there, in the end."""
    late = time.monotonic() + 20
    with distributed.Client(cluster, set_as_default=False) as client:
        while time.monotonic() < late:
            if len(client.nthreads()) == 2 and set(client.run(os.getpid).values()) == set(pids(cluster)):
                return True
            time.sleep(0.05)
    return False


@pytest.fixture
def said():
    return []


@pytest.fixture
def pool(cluster, said):
    with connected(cluster.scheduler_address, said.append, STAND_IN, limit=20.0) as made:
        assert made.jobs == 2
        yield made


@pytest.fixture
def tasks(tmp_path):
    """``tasks(note…)``: cases that make the stand-in do what their notes say."""

    def made(*notes):
        for place, note in enumerate(notes):
            case = msgspec.structs.replace(CASE, note=note)
            yield Task(case=str(write_case(case, tmp_path / str(place))))

    return made


def pids(cluster):
    return [nanny.pid for nanny in cluster.workers.values()]


def without_process(result):
    return msgspec.structs.replace(result, fallback=())


def test_results_are_those_of_the_local_pool_in_the_same_order(pool, tasks):
    notes = ["fine", "signal SIGSEGV", "say hello", "exit 3", "fine", "fine", "fine"]
    with Pool(2, command=(sys.executable, "-m", STAND_IN)) as local:
        expected = [without_process(item) for item in local.run(tasks(*notes))]
    found = [without_process(item) for item in pool.run(tasks(*notes))]
    assert found == expected
    assert [len(item.findings) for item in found] == [0, 1, 0, 1, 0, 0, 0]
    assert "Assertion `x' failed" in found[1].findings[0].message


def test_a_case_travels_with_its_tensors(pool, tmp_path):
    (tmp_path / "weights.safetensors").write_bytes(b"weights")
    case = msgspec.structs.replace(CASE, note="beside weights.safetensors weights", tensors="weights.safetensors")
    [result] = pool.run([Task(case=str(write_case(case, tmp_path)))])
    assert result.legs == {"eager": "ran"}
    assert result.unrepeated == ()
    (tmp_path / "weights.safetensors").write_bytes(b"others")
    [result] = pool.run([Task(case=result.case)])
    assert "exit status 9" in result.findings[0].message


def test_workers_stay_warm_and_end_with_the_campaign(cluster, said, tasks):
    with connected(cluster.scheduler_address, said.append, STAND_IN) as pool:
        served = {item.fallback for item in pool.run(tasks(*["fine"] * 8))}
        assert len(served) <= 2
    until = time.monotonic() + 60
    for pid in [int(item) for [item] in served]:
        while time.monotonic() < until and os.path.exists(f"/proc/{pid}"):
            time.sleep(0.02)
        assert not os.path.exists(f"/proc/{pid}")


def test_a_node_that_is_killed_loses_nothing(cluster, pool, said, tasks):
    found = []
    for place, result in enumerate(pool.run(tasks(*["wait 0.3"] * 12))):
        found.append(result)
        if place == 2:
            os.kill(pids(cluster)[0], signal.SIGKILL)
    assert [item.legs for item in found] == [{"eager": "ran"}] * 12
    assert [(item.findings, item.unrepeated) for item in found] == [((), ())] * 12
    assert [os.path.basename(os.path.dirname(item.case)) for item in found] == [str(place) for place in range(12)]
    assert [line for line in said if "is lost; what it ran is run again" in line]


@pytest.fixture
def loop():
    """An event loop that runs in a thread."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever)
    thread.start()
    yield made
    made.call_soon_threadsafe(made.stop)
    thread.join()


def test_an_answer_that_is_lost_with_its_node_is_asked_for_again(tasks, loop, monkeypatch):
    """The engine says that a case is done, and the node is gone before its answer was fetched."""
    monkeypatch.setattr("harness.workers.cluster.runner.LOOKS_EVERY", 0.0)
    asked = []

    class Client:
        def __init__(self, loop):
            self.loop = types.SimpleNamespace(asyncio_loop=loop)

        def submit(self, function, parcel, *, workers, **_):
            asked.extend(workers)
            return self

        async def gather(self, future, asynchronous):
            if len(asked) == 1:
                pool.nodes.see({"tcp://b:1": 1})
                await asyncio.Event().wait()
            return packed_reply(CaseResult(case="there", legs={"eager": "ran"}), "there", "here")

        def cancel(self):
            pass

    pool = ClusterPool(Client(loop), "tcp://s:1", own_identity(), print)
    pool.nodes.see({"tcp://a:1": 1, "tcp://b:1": 1})
    for address in ("tcp://a:1", "tcp://b:1"):
        pool.nodes.accept(address)
    [task] = tasks("fine")
    assert pool.run_one(task) == CaseResult(case="here", legs={"eager": "ran"})
    assert asked == ["tcp://a:1", "tcp://b:1"]


def test_who_looks_often_disturbs_no_answer(pool, tasks, monkeypatch):
    """Dask fetches the answers of several cases by one request, which nobody may cancel for all."""
    monkeypatch.setattr("harness.workers.cluster.runner.LOOKS_EVERY", 0.0005)
    assert [item.legs for item in pool.run(tasks(*["fine"] * 60))] == [{"eager": "ran"}] * 60


def test_a_case_that_kills_its_nodes_is_a_finding(pool, tasks):
    fine, kills, after = pool.run(tasks("fine", "kill-node", "fine"))
    [finding] = kills.findings
    assert (finding.oracle, finding.stage) == ("crash", "run")
    assert f"{MOST_LOSSES} nodes were lost while they ran it" in finding.message
    assert LOST.lower() in finding.bucket.lower()
    assert fine.legs == after.legs == {"eager": "ran"}


def test_a_campaign_on_the_cluster_is_the_campaign_on_this_machine(cluster, said, tmp_path):
    def options(name):
        return Options(TARGETS, 6, seed=3, out=tmp_path / name)

    def told(name):
        done = read_run(tmp_path / name).done
        return [(item.number, os.path.basename(item.result.case), item.result.legs) for item in done]

    run_campaign(
        options("here"), (), lambda *_: None, workers=lambda jobs: Pool(jobs, command=(sys.executable, "-m", STAND_IN))
    )
    tally = run_campaign(
        options("there"),
        (),
        lambda *_: None,
        workers=lambda _: connected(cluster.scheduler_address, said.append, STAND_IN),
    )
    assert (tally.graphs, tally.cases) == (6, 12)
    assert told("there") == told("here")
    assert all(os.path.exists(item.result.case) for item in read_run(tmp_path / "there").done)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"armdiff": "0.0.9 (sources 1)"},
            r"armdiff is 0\.1\.0 \(sources \w{12}\) there and 0\.0\.9 \(sources 1\) here",
        ),
        ({"releases": {"torch": "9.9.9"}}, r"torch is .* there and 9\.9\.9 here"),
    ],
)
def test_nodes_that_are_not_what_the_campaign_is_are_refused(cluster, said, changes, line):
    wanted = Identity(**{"armdiff": own_identity().armdiff, "releases": own_identity().releases, **changes})
    with pytest.raises(CannotRun, match=rf"^node tcp://\S+ is refused: {line}; install the same there$"):
        connected(cluster.scheduler_address, said.append, STAND_IN, wanted=wanted)
    assert len(said) == 2


def test_a_node_whose_worker_cannot_start_is_refused(cluster, said, tasks):
    with connected(cluster.scheduler_address, said.append, "tests.unit.no_such_worker") as pool:
        pool.nodes.patience = 0.1
        with pytest.raises(CannotRun, match=r"is refused: a worker process cannot start \(exit status 1\)"):
            [*pool.run(tasks("fine"))]


def test_a_lost_scheduler_ends_the_campaign_in_one_line(said, tasks):
    cluster = local_cluster(1)
    with connected(cluster.scheduler_address, said.append, STAND_IN) as pool:
        results = pool.run(tasks("fine", *["hang"] * 9))
        assert next(results).legs == {"eager": "ran"}
        threading.Thread(target=cluster.close, daemon=True).start()
        with pytest.raises(CannotRun, match=r"^tcp://\S+: the scheduler is lost; .* with --resume$"):
            list(results)


def test_a_cluster_without_nodes_says_how_to_start_some(said):
    with distributed.LocalCluster(n_workers=0, dashboard_address=None, silence_logs=60) as empty:
        address = empty.scheduler_address
        with pytest.raises(CannotRun, match=f"{address}: the cluster has no nodes; start .* 'dask worker"):
            connected(address, said.append)


def test_nodes_that_do_not_answer_are_told_from_none_and_answer_in_vain_later(monkeypatch, said):
    asked, answer = queue.SimpleQueue(), threading.Event()

    def run(*_, **__):
        asked.put(threading.current_thread())
        answer.wait(60)

    client = types.SimpleNamespace(
        run_on_scheduler=lambda _: b"",
        nthreads=lambda: {"tcp://a:1": 1},
        run=run,
        close=lambda **_: None,
    )
    monkeypatch.setattr(distributed, "Client", lambda *_, **__: client)
    monkeypatch.setattr("harness.workers.cluster.runner.ASKING", 0.0)
    with pytest.raises(CannotRun, match="the nodes do not answer within 0 s; see what 'dask worker' prints there"):
        connected("tcp://s:1", said.append)
    answer.set()
    asked.get(timeout=60).join(60)
    assert said == []


@pytest.mark.parametrize("address", ["somewhere", "localhost:8786", "tcp://host", "http://host:80"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(BadInput, match=r"--cluster: .* is no scheduler's address; write for example tcp://HOST:8786"):
        connected(address, print)


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr("harness.workers.cluster.runner.CONNECTING", 1.0)
    with pytest.raises(CannotRun, match=r"^tcp://127\.0\.0\.1:9: no scheduler answers \(.*\); start one with"):
        connected("tcp://127.0.0.1:9", print)


def test_without_dask_the_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(CannotRun, match=r"pip install 'armdiff\[cluster\]'"):
        connected("tcp://127.0.0.1:9", print)


def test_a_cluster_pool_is_closed_once_only(cluster, said):
    pool = connected(cluster.scheduler_address, said.append, STAND_IN)
    assert isinstance(pool, ClusterPool)
    with pool:
        pass
    pool.close()
    with pytest.raises(CannotRun, match="closed"):
        pool.nodes.take()
