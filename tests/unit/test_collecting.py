"""When a worker collects garbage, and what it forgets."""

from __future__ import annotations

import linecache
from importlib import import_module

import pytest

from harness.case.building import CASE_FILE
from harness.compat.warm import collecting
from harness.compat.warm.collecting import (
    MOST_AMID,
    MOST_GROWN,
    MOST_YOUNG,
    STREAMS,
    before_forks,
    between_cases,
    between_passes,
    between_runs,
)
from harness.ethosu import state

MIB = 1 << 20


class Collector:
    """Stands in for ``gc`` where collections are paused, and for the size of the process."""

    def __init__(self) -> None:
        self.young, self.bytes, self.told = 0, 600 * MIB, list[str]()

    def isenabled(self) -> bool:
        return False

    def get_count(self) -> tuple[int, int, int]:
        return self.young, 0, 0

    def collect(self, generation: int = 2) -> None:
        self.told.append("collect" if generation == 2 else "collect young")
        self.young = 0

    def freeze(self) -> None:
        self.told.append("freeze")

    def after(self, young: int, grown: int, done: bool) -> list[str]:
        """What is done behind a case that leaves so many objects and bytes."""
        self.told.clear()
        self.young, self.bytes = self.young + young, self.bytes + grown
        between_cases(done)
        return list(self.told)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    """One that has collected once."""
    made = Collector()
    monkeypatch.setattr(collecting, "gc", made)
    monkeypatch.setattr(collecting, "resident", lambda pid: made.bytes)
    monkeypatch.setattr(collecting._Pace, "level", 0)
    monkeypatch.setattr(collecting._Pace, "kept", False)
    assert made.after(0, 0, done=True) == ["collect", "freeze"]  # what the first case imported
    return made


def test_the_passes_of_a_network_are_not_waited_for(collector: Collector) -> None:
    collector.told.clear()
    collector.young = MOST_AMID
    between_passes()
    assert collector.told == []
    collector.young = MOST_AMID + 1
    between_passes()
    assert collector.told == ["collect"]


def test_what_the_run_before_needed_goes_where_it_is_large(collector: Collector) -> None:
    collector.told.clear()
    between_runs()
    assert collector.told == []
    between_runs(everything=True)
    assert collector.told == ["collect"]


def test_little_garbage_waits_for_more(collector: Collector) -> None:
    assert collector.after(MOST_YOUNG, MOST_GROWN, done=True) == []
    assert collector.after(1, 0, done=True) == ["collect", "freeze"]
    assert collector.after(1, 0, done=True) == []


def test_amid_a_graph_only_young_objects_are_looked_at_and_behind_it_the_rest(collector: Collector) -> None:
    assert collector.after(MOST_YOUNG, 0, done=False) == []
    assert collector.after(1, 0, done=False) == ["collect young"]
    assert collector.after(1, 0, done=True) == ["collect", "freeze"]
    assert collector.after(1, 0, done=True) == []


def test_garbage_of_few_objects_and_many_bytes_is_collected(collector: Collector) -> None:
    assert collector.after(1, MOST_GROWN + 1, done=False) == ["collect young"]
    assert collector.after(1, 1, done=False) == []


def test_what_forks_share_is_frozen_however_little_it_is(collector: Collector) -> None:
    collector.told.clear()
    before_forks()
    assert collector.told == ["collect", "freeze"]


def test_the_source_of_a_case_is_kept_for_its_targets_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linecache, "cache", {f"{CASE_FILE}0>": (), "other.py": ()})
    between_cases(done=False)
    assert len(linecache.cache) == 2
    between_cases()
    assert list(linecache.cache) == ["other.py"]


def test_what_the_ethos_u_model_keeps_of_a_payload_serves_one_case() -> None:
    caches = [getattr(import_module(module), name) for module, name in STREAMS]
    for cache in caches:
        cache.cache_clear()
    state._feature_map("OFM", 1, 1, 1, 0, True, False, *range(11))
    between_runs(everything=True)
    assert [cache.cache_info().currsize for cache in caches] == [0, 0, 0, 1], "a case runs more than once"
    between_cases(done=False)
    assert [cache.cache_info().currsize for cache in caches] == [0, 0, 0, 0]
