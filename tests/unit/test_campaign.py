"""Campaigns with a stand-in for the workers: folders, resuming, shards, budgets, disks that are full."""

import itertools
import os
import pathlib
import time

import msgspec
import pytest

from harness.campaign.budget import Budget
from harness.campaign.campaign import STORED, Options, Ran, graph_cases, run_campaign
from harness.campaign.run_folder import INFO, PREVIOUS, RESULTS, Minimized, append, mended, read_run, set_aside
from harness.campaign.steering import OF, Rarest
from harness.case.errors import BadInput, CannotRun
from harness.case.reading import read_case
from harness.reports.bugs.verifying import SHOWS, Verified
from harness.reports.concluding import Concluding
from harness.reports.reporting.material import tallied
from harness.triage.findings import Finding
from tests.stand_in import InProcess

TARGETS = ("TOSA-1.0+INT", "ethos-u55-128")


def options(folder, **words):
    return Options(**{"targets": TARGETS, "max_examples": 6, "seed": 3, "out": folder, **words})


def run(folder, report=lambda *_: None, afterwards=lambda *_: (), **words):
    return run_campaign(options(folder, **words), (), report, afterwards, InProcess)


def digests(folder):
    return [os.path.basename(item.result.case) for item in read_run(folder).done]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing disturbed, and its tally."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(folder)


def test_a_graph_is_done_when_all_its_cases_are():
    ran, graphs = Ran(3), []
    for number in (4, 0, 1, 3, 3, 2, 2, 5):
        ran.add(number)
        graphs.append(ran.graphs)
    assert graphs == [0, 0, 0, 0, 0, 1, 1, 2]
    assert ran.numbers == {*range(6)}


def test_a_run_leaves_a_folder_that_says_everything(whole):
    folder, tally = whole
    found = read_run(folder)
    assert (tally.graphs, tally.cases) == (6, 12)
    assert found.info.state == "done"
    assert found.info.asked.seed == 3
    assert [item.number for item in found.done] == [*range(12)]
    assert {item.name for item in (folder / "cases").iterdir()} == set(digests(folder))
    assert found.info.seconds >= found.done[-1].at > 0


@pytest.mark.parametrize("after", [1, 5, 11])
def test_a_run_that_was_interrupted_goes_on_where_it_was(tmp_path, whole, after):
    def stop(progress, result):
        if progress.tally.cases == after:
            raise KeyboardInterrupt

    first = run(tmp_path, stop)
    assert (first.cases, read_run(tmp_path).info.state) == (after, "interrupted")
    assert first.interrupted.startswith("interrupted; the same command begins again: armdiff")
    assert first.problems == []
    second = run(tmp_path, resume=True)
    assert (second.graphs, second.cases) == (6, 12)
    assert read_run(tmp_path).info.state == "done"
    assert digests(tmp_path) == digests(whole[0])
    lines = (tmp_path / RESULTS).read_text().splitlines()
    assert len(lines) == 12, "no case was run twice"


def test_a_run_that_was_killed_in_the_middle_of_a_line_goes_on(tmp_path, whole):
    run(tmp_path)
    file = tmp_path / RESULTS
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:4]) + lines[4][:50])
    run(tmp_path, resume=True)
    assert digests(tmp_path) == digests(whole[0])


def test_a_finished_run_that_is_resumed_runs_nothing(tmp_path):
    run(tmp_path, max_examples=1)
    before = (tmp_path / RESULTS).read_bytes()
    assert run(tmp_path, max_examples=1, resume=True).graphs == 1
    assert (tmp_path / RESULTS).read_bytes() == before


def test_a_resumed_run_may_be_longer(tmp_path, whole):
    run(tmp_path, max_examples=2)
    run(tmp_path, resume=True)
    assert digests(tmp_path) == digests(whole[0])


def test_shards_together_are_the_whole(tmp_path):
    words = {"max_examples": 50, "targets": TARGETS[:1]}
    run(tmp_path / "whole", **words)
    for index in (1, 2):
        run(tmp_path / str(index), shard=(index, 2), **words)
    whole, *parts = (
        {item.number: item.result for item in read_run(tmp_path / name).done} for name in ("whole", "1", "2")
    )
    assert not parts[0].keys() & parts[1].keys()
    assert all(parts)
    assert {number: os.path.basename(result.case) for part in parts for number, result in part.items()} == {
        number: os.path.basename(result.case) for number, result in whole.items()
    }


def test_steered_shards_are_the_whole(tmp_path):
    def drawn(**words):
        return dict(graph_cases(options(tmp_path, **{"max_examples": 120, "targets": TARGETS[:1], **words})))

    everything, steered = drawn(), drawn(steer=True)
    assert steered.items() <= everything.items()  # under the same numbers
    assert len(steered) == 120 // OF
    parts = [drawn(steer=True, shard=(index, 2)) for index in (1, 2)]
    assert parts[0] | parts[1] == steered
    assert all(parts)
    assert not parts[0].keys() & parts[1].keys()


def test_what_was_drawn_is_counted_for_whoever_looks_for_a_graph_again(tmp_path):
    counted = []
    run(tmp_path, afterwards=lambda progress, *_: counted.append(progress.drawn) or ())
    assert counted == [6]


def test_a_full_disk_ends_the_run_and_keeps_what_was_counted(tmp_path):
    def fill(progress, result):
        if progress.tally.cases == 3:
            (tmp_path / RESULTS).unlink()
            (tmp_path / RESULTS).symlink_to("/dev/full")

    tally = run(tmp_path, fill)
    assert tally.cases == 3
    assert "No space left on device" in tally.stopped
    assert "give another --out, or free some space" in tally.stopped


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRun, match=r"file.*cannot be written.*give another --out"):
        run(tmp_path / "file" / "out")


def test_what_is_done_afterwards_is_interrupted_in_good_order(tmp_path):
    def afterwards(progress, pool, budget):
        raise KeyboardInterrupt

    tally = run(tmp_path, afterwards=afterwards)
    assert (tally.cases, read_run(tmp_path).info.state) == (12, "interrupted")


def test_what_was_left_is_written_down(tmp_path):
    run(tmp_path, afterwards=lambda *_: ["one bucket"], max_examples=1)
    assert read_run(tmp_path).info.left == ("one bucket",)


def test_the_run_that_was_there_is_kept_once(tmp_path):
    for seed in (1, 2, 3):
        set_aside(tmp_path)
        run(tmp_path, seed=seed, max_examples=1)
    assert read_run(tmp_path).info.asked.seed == 3
    previous = read_run(tmp_path / PREVIOUS)
    assert previous.info.asked.seed == 2
    assert (tmp_path / PREVIOUS / "cases" / digests(tmp_path / PREVIOUS)[0]).exists()


def test_nothing_is_set_aside_where_no_run_was(tmp_path):
    (tmp_path / "cases").mkdir()
    set_aside(tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["cases"]


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "is no run's folder"), ("{", "Input data was truncated"), ('{"schema": 1}', "missing required field")],
)
def test_a_folder_that_is_no_run_is_one_clear_line(tmp_path, text, message):
    if text is not None:
        (tmp_path / INFO).write_text(text)
    with pytest.raises(BadInput, match=message):
        read_run(tmp_path)


def test_a_damaged_line_is_named(tmp_path, whole):
    (tmp_path / INFO).write_bytes((whole[0] / INFO).read_bytes())
    (tmp_path / RESULTS).write_text('{"number": 0}\n')
    with pytest.raises(BadInput, match=r"results\.jsonl: line 1: .*its case will run again"):
        read_run(tmp_path)


def test_a_last_line_that_was_cut_off_is_not_read_and_is_cut_off(tmp_path, whole):
    lines = (whole[0] / RESULTS).read_bytes().splitlines(keepends=True)
    (tmp_path / INFO).write_bytes((whole[0] / INFO).read_bytes())
    (tmp_path / RESULTS).write_bytes(lines[0] + lines[1][:-5])
    assert [item.number for item in read_run(tmp_path).done] == [0]
    mended(tmp_path)
    append(tmp_path, read_run(whole[0]).done[2:3])
    assert [item.number for item in read_run(tmp_path).done] == [0, 2]


@pytest.fixture
def scripts(monkeypatch):
    """Folders whose script was asked for; nothing is run."""
    asked = []
    monkeypatch.setattr(
        "harness.reports.bugs.writing.run_repro", lambda folder, *_: asked.append(folder.name) or Verified(SHOWS)
    )
    return asked


def test_new_buckets_are_minimized_in_the_folder_and_what_was_left_is_said(tmp_path, monkeypatch, scripts):
    monkeypatch.setenv("STAND_IN", "signal SIGSEGV")
    monkeypatch.setattr("harness.campaign.budget.MOST_A_BUCKET", 0.0)
    asked, told = options(tmp_path, max_examples=1), []
    run_campaign(asked, (), lambda *_: None, Concluding(asked, (), None, told.append), InProcess)
    found = read_run(tmp_path)
    [made] = found.minimized
    assert "SIGSEGV" in made.bucket
    assert made.state == "stopped"
    assert found.info.left[0].startswith(f"stopped early: {made.final}; 'armdiff reduce ")
    assert read_case(pathlib.Path(found.info.left[0].split()[5])) is not None
    assert f"--bucket '{made.bucket}' --out {tmp_path}/reductions/crash-exception-" in found.info.left[0]
    assert made.case.startswith("reductions/crash-exception-"), "a case may show several buckets"
    assert read_case(tmp_path / made.case) is not None
    assert (tmp_path / made.origin).exists()
    assert (tmp_path / "bugs" / made.folder / "case.json").exists()
    assert (made.repro, scripts) == (SHOWS, [made.folder])
    assert made.folder == os.path.basename(made.folder) != "", "reports link the folder by its name"
    assert told == [f"minimizing 1 of 1: {made.bucket}"]
    again = run_campaign(
        options(tmp_path, max_examples=1, resume=True),
        (),
        lambda *_: None,
        Concluding(asked, (), found, told.append),
        InProcess,
    )
    assert len(again.new) == 2
    assert len(told) == 1, "a bucket that was minimized is not minimized again"


def test_a_bucket_that_was_cut_down_to_a_known_bug_is_left_to_look_at(tmp_path, monkeypatch, scripts):
    def known(finding, *_, **__):
        small = msgspec.structs.replace(finding, state="known", entry="e", proof="p")
        words = {"bucket": finding.bucket, "final": "f", "origin": "o", "operators": ("relu",), "state": "minimized"}
        return Minimized(case=finding.case, finding=small, **words), small

    monkeypatch.setenv("STAND_IN", "signal SIGSEGV")
    monkeypatch.setattr("harness.reports.concluding.minimize", known)
    asked = options(tmp_path, max_examples=1, targets=TARGETS[:1])
    run_campaign(asked, (), lambda *_: None, Concluding(asked, (), None, lambda _: None), InProcess)
    found = read_run(tmp_path)
    [made] = found.minimized
    assert found.info.left == (f"f: its smallest case shows the known bug e; look at {tmp_path / made.origin} too",)


def test_trouble_with_one_bucket_costs_the_run_nothing_else(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("of our own making")

    monkeypatch.setenv("STAND_IN", "signal SIGSEGV")
    monkeypatch.setattr("harness.reports.concluding.minimize", broken)
    asked = options(tmp_path, max_examples=1, targets=TARGETS[:1])
    tally = run_campaign(asked, (), lambda *_: None, Concluding(asked, (), None, lambda _: None), InProcess)
    found = read_run(tmp_path)
    assert (tally.cases, found.info.state, found.minimized) == (1, "done", ())
    assert found.info.left[0].startswith("not minimized (ZeroDivisionError: of our own making): v1/crash/")


def test_hypothesis_shrinks_first_and_the_next_campaign_begins_with_what_it_found(tmp_path, monkeypatch, scripts):
    monkeypatch.setenv("STAND_IN", "signal SIGSEGV")
    monkeypatch.setattr("harness.campaign.budget.MOST_A_BUCKET", 4)
    place = str(tmp_path / "database")
    asked = options(tmp_path / "first", max_examples=1, database=(place,), targets=TARGETS[:1])
    run_campaign(asked, (), lambda *_: None, Concluding(asked, (), None, lambda _: None), InProcess)
    [made] = read_run(asked.out).minimized
    drawn = read_case(asked.out / made.origin)
    assert (asked.out / "reductions" / "hypothesis").is_dir()
    assert scripts == [made.folder]

    monkeypatch.setenv("STAND_IN", "")
    run(tmp_path / "second", max_examples=1, database=(f"ro:{place}",))
    first, *_, last = read_run(tmp_path / "second").done
    assert first.number < 2, "numbers of drawn graphs do not depend on the database"
    assert last.number >= STORED
    stored = read_case(tmp_path / "second" / "cases" / os.path.basename(last.result.case))
    assert len(stored.graph.nodes) <= len(drawn.graph.nodes)


def test_shards_share_what_the_database_holds(tmp_path, monkeypatch):
    places = [("a",), ("b",), ("c",)]
    monkeypatch.setattr("generators.search.database_at", lambda _: None)
    monkeypatch.setattr("generators.search.stored", lambda *_: places)
    shards = [
        list(graph_cases(options(tmp_path, database=("x",), max_examples=1, shard=(index, 2)))) for index in (1, 2)
    ]
    assert [cases for shard in shards for number, cases in shard if number >= STORED] == [("a",), ("c",), ("b",)]


def test_without_a_number_of_graphs_the_targets_take_turns_and_each_has_its_own_rarest_graphs(tmp_path):
    def drawn(**words):
        found = graph_cases(options(tmp_path, **{"max_examples": None, "targets": TARGETS, **words}))
        return dict(itertools.takewhile(lambda item: item[0] < most, found))

    most = 3 * OF * len(TARGETS)
    everything, steered = drawn(), drawn(steer=True)
    assert [case.target for [case] in everything.values()] == [TARGETS[n % len(TARGETS)] for n in range(most)]
    assert steered.items() <= everything.items()
    for place, target in enumerate(TARGETS):
        rarest = Rarest[int]()
        mine = [number for number in range(most) if number % len(TARGETS) == place]
        taken = [rarest.offer(number, everything[number][0]) for number in mine]
        assert [number for number in taken if number is not None] == [
            number for number, [case] in steered.items() if case.target == target
        ]
        assert [number is not None for number in taken] == [*[False] * (OF - 1), True] * 3


def test_a_graph_that_runs_on_one_target_is_complete(tmp_path):
    def stop(progress, result):
        if progress.tally.cases == 3:
            raise KeyboardInterrupt

    tally = run(tmp_path, stop, max_examples=None)
    judged = tallied(read_run(tmp_path), ())
    assert (tally.graphs, judged.graphs, judged.unfinished) == (3, 3, 0)
    assert [item.number for item in judged.run.done] == [0, 3, 4], "two numbers a graph, one a target"


class Counted:
    def __init__(self, cases, *buckets):
        self.cases = cases
        words = {"oracle": "crash", "kind": "k", "target": TARGETS[0], "stage": "s", "message": "m", "case": "c"}
        self.new = [Finding(bucket=bucket, **words) for bucket in buckets]


def budget(seconds, spent):
    return Budget(seconds, time.monotonic() - spent, before=0, warm=(0.0, 0))


@pytest.mark.parametrize(
    ("seconds", "spent", "tally", "running", "over"),
    [
        (None, 1e6, Counted(1), 9, False),
        (600, 500, Counted(100), 4, False),  # 5 s a case: 25 s for what runs, 8 for the reports
        (600, 575, Counted(115), 4, True),
        (600, 470, Counted(94, "a"), 4, False),
        (600, 480, Counted(96, "a", "a"), 4, True),  # 90 s for one bucket
        (600, 350, Counted(70, "a", "b", "c", "d", "e", "f"), 4, True),  # 240 s, the most, for all of them
        (600, 320, Counted(64, "a", "b", "c", "d", "e", "f"), 4, False),
        (20, 5, Counted(5), 0, False),
    ],
)
def test_drawing_ends_early_enough_for_what_follows(seconds, spent, tally, running, over):
    assert budget(seconds, spent).drawing_is_over(tally, running) is over


def test_the_start_of_the_workers_is_no_part_of_what_a_case_takes():
    started = budget(60, 16)
    started.before, started.warm = None, None
    assert not started.drawing_is_over(Counted(100), 6), "a resumed run, before its first result"
    started.started -= 1
    assert not started.drawing_is_over(Counted(103), 6), "17 s for three cases, most of it the start"
    assert (started.before, started.warm) == (100, (pytest.approx(17, abs=0.5), 103))
    started.started -= 20
    assert not started.drawing_is_over(Counted(123), 6), "1 s a case"
    started.started -= 11
    assert started.drawing_is_over(Counted(134), 6), "48 s, 7 for what runs, 6 for the reports"


def test_a_bucket_gets_its_share_of_what_is_left():
    now = time.monotonic()
    assert budget(600, 392).until_for(2) - now == pytest.approx(75, abs=1)  # a quarter is for the script
    assert budget(6000, 0).until_for(2) - now == pytest.approx(300, abs=1)
    assert budget(600, 599).until_for(2) - now == pytest.approx(0, abs=1)
    assert budget(None, 599).until_for(2) - now == pytest.approx(300, abs=1)
    assert budget(600, 595).is_over()
    assert not budget(600, 500).is_over()


def test_of_a_number_of_graphs_that_is_steered_the_last_ones_count_too(tmp_path):
    found = dict(graph_cases(options(tmp_path, max_examples=OF + 2, steer=True)))
    first, last = found
    assert first < OF <= last
    assert all(len(cases) == len(TARGETS) for cases in found.values())


def test_options_are_what_a_run_was_asked_for(tmp_path):
    asked = options(tmp_path, shard=(2, 3), strict=True, steer=True).asked
    assert msgspec.json.decode(msgspec.json.encode(asked), type=type(asked)) == asked
