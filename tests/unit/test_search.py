"""Hypothesis' shrinking of a campaign's graphs, and the example database (``generators.search``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from generators.cases import draw_block, graph_digest
from generators.search import Drawn, OutOfTime, database_at, seed_of_run, shrunk, stored
from harness.case.errors import BadInput

TARGETS = ("TOSA-1.0+INT",)
BLOCK = 20


def _has_conv(drawn: Drawn) -> str | None:
    return "v1/made-up" if any(node.operator == "conv2d" for node in drawn[0].graph.nodes) else None


def _seed(drawn: Drawn) -> int:
    seed = seed_of_run(graph_digest(drawn[0].graph), 3, 1, BLOCK)
    assert seed is not None
    return seed


@cache
def _drawn() -> list[Drawn]:
    """Graphs, smallest first."""
    return sorted(draw_block(3, 0, BLOCK, TARGETS), key=lambda drawn: len(drawn[0].graph.nodes))


def _with_conv() -> list[Drawn]:
    return [drawn for drawn in _drawn() if _has_conv(drawn)]


def _largest_with_conv() -> Drawn:
    return _with_conv()[-1]


@dataclass(frozen=True)
class Shrunk:
    """The largest graph, what it was shrunk to, what was judged meanwhile, and the folder of its database."""

    drawn: Drawn
    small: Drawn | None
    judged: tuple[Drawn, ...]
    folder: Path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Shrunk:
    judged: list[Drawn] = []

    def judge(item: Drawn) -> str | None:
        judged.append(item)
        return _has_conv(item)

    drawn, folder = _largest_with_conv(), tmp_path_factory.mktemp("database")
    small = shrunk(graph_digest(drawn[0].graph), _seed(drawn), TARGETS, judge, database_at([str(folder)]))
    return Shrunk(drawn, small, tuple(judged), folder)


def test_a_graph_shrinks_to_what_its_bucket_needs(done: Shrunk) -> None:
    assert len(done.drawn[0].graph.nodes) >= 3
    assert done.small is not None
    assert "conv2d" in {node.operator for node in done.small[0].graph.nodes}
    assert len(done.small[0].graph.nodes) < len(done.drawn[0].graph.nodes)


def test_only_the_graph_and_what_comes_of_it_is_judged(done: Shrunk) -> None:
    assert graph_digest(done.judged[0][0].graph) == graph_digest(done.drawn[0].graph)


def test_no_case_is_judged_twice(done: Shrunk) -> None:
    assert len({str(item) for item in done.judged}) == len(done.judged)


def test_a_judge_out_of_time_keeps_the_smallest_so_far() -> None:
    drawn = next(drawn for drawn in _with_conv() if len(drawn[0].graph.nodes) > 1)
    tries = 0

    def judge(item: Drawn) -> str | None:
        nonlocal tries
        tries += 1
        if tries == 6:
            raise OutOfTime
        return _has_conv(item)

    small = shrunk(graph_digest(drawn[0].graph), _seed(drawn), TARGETS, judge)

    assert small is not None
    assert _has_conv(small)
    assert tries == 6


def test_a_graph_that_does_not_show_again_is_none() -> None:
    drawn = _largest_with_conv()
    assert shrunk(graph_digest(drawn[0].graph), _seed(drawn), TARGETS, lambda _: None) is None


def test_a_graph_of_no_block_has_no_seed() -> None:
    assert seed_of_run("0" * 12, 3, 1, BLOCK) is None


def test_what_was_shrunk_is_stored_for_every_target(done: Shrunk) -> None:
    again = stored(database_at([f"ro:{done.folder}"]), ("ethos-u55-128", "TOSA-1.0+INT"))

    assert done.small is not None
    assert done.small[0].graph in [drawn[0].graph for drawn in again]
    assert [case.target for case in again[0]] == ["ethos-u55-128", "TOSA-1.0+INT"]


def test_reading_leaves_the_database_as_it_is(done: Shrunk) -> None:
    before = sorted(done.folder.rglob("*"))

    assert stored(database_at([str(done.folder)]), TARGETS)

    assert sorted(done.folder.rglob("*")) == before


def test_two_buckets_are_stored_apart(tmp_path: Path) -> None:
    database = database_at([str(tmp_path)])
    for operator in ("conv2d", "cat"):

        def judge(drawn: Drawn, operator: str = operator) -> str | None:
            return f"v1/{operator}" if any(node.operator == operator for node in drawn[0].graph.nodes) else None

        graph = next(drawn for drawn in _drawn() if judge(drawn))
        assert shrunk(graph_digest(graph[0].graph), _seed(graph), TARGETS, judge, database)

    operators = {node.operator for drawn in stored(database, TARGETS) for node in drawn[0].graph.nodes}
    assert {"conv2d", "cat"} <= operators


def test_a_redis_server_is_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeredis = pytest.importorskip("fakeredis")
    import redis

    server = fakeredis.FakeServer()
    monkeypatch.setattr(redis.Redis, "from_url", lambda *_, **__: fakeredis.FakeRedis(server=server))
    drawn = _with_conv()[0]
    graph = graph_digest(drawn[0].graph)

    shrunk(graph, _seed(drawn), TARGETS, _has_conv, database_at(["redis://here:1/0"]))

    assert stored(database_at(["redis://here:1/0"]), TARGETS)


@pytest.mark.parametrize(
    ("place", "says"), [("ro:nowhere", "is no folder"), ("redis://127.0.0.1:1/0", "does not answer")]
)
def test_a_place_that_cannot_be_used_is_named(place: str, says: str) -> None:
    pytest.importorskip("redis")
    with pytest.raises(BadInput, match=says):
        database_at([place])
