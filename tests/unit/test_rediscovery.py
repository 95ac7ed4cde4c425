"""The benchmark of rediscovery: courses made by hand, campaigns without workers, an engine without Vela."""

import dataclasses
import itertools

import msgspec
import pytest

from harness.campaign.campaign import STORED
from harness.campaign.run_folder import read_run
from harness.case.errors import BadInput
from harness.case.interrupts import Interrupted
from harness.case.place import Place, PlacedOperator
from harness.cli.benchmark.rediscovery import contestants as rediscovery
from harness.cli.benchmark.rediscovery.contestants import (
    CONTESTANTS,
    STEPS,
    Asked,
    Campaign,
    Engine,
    all_motifs,
    campaign_steps,
    cold_motifs,
    engine_steps,
    no_motifs,
)
from harness.cli.benchmark.rediscovery.course import Course, Step, answer_key, step_of, told_by_cause
from harness.cli.benchmark.rediscovery.figures import as_json, lines
from harness.cli.benchmark.rediscovery.running import FOLDER, contestants_named, courses, root_causes
from harness.tosa.engine import BLOCK, Result
from harness.triage.conditions import Condition
from harness.triage.corpus import corpus_folders, entries
from harness.triage.known import KnownBug
from tests.stand_in import InProcess
from tests.unit.reporting_runs import finding

KEY = {"executorch": ("a", "b", "c", "d"), "ethos-u-vela": ("v",)}


def course(*steps, name="campaign", seed=0):
    return Course(name, seed, tuple(Step(seconds, 3, tuple(found)) for seconds, found in steps))


def test_a_share_is_of_what_was_seen_by_then_and_half_is_when_the_middle_one_was():
    found = course((60, "a"), (60, ""), (30, "ab"), (90, "cx"))
    assert found.first == {"a": 60, "b": 150, "c": 240, "x": 240}
    assert [found.share(KEY["executorch"], seconds) for seconds in (59, 60, 150, 240, 241)] == [
        0,
        0.25,
        0.5,
        0.75,
        None,
    ]
    assert found.half(KEY["executorch"]) == 150
    assert found.half(("a", "b", "c")) == 150  # two of three are half
    assert course((60, "a")).half(KEY["executorch"]) is None


def test_only_what_is_proved_shows_a_cause():
    known = msgspec.structs.replace(finding(), state="known", entry="a")
    alike = msgspec.structs.replace(finding(blamed="APass"), state="resembling", entry="b")
    step = step_of([known, known, alike, msgspec.structs.replace(finding(), information=True)], 2.5, 1)
    assert (step.processor, step.ran, step.entries) == (2.5, 1, ("a",))
    [text] = step.unproved
    assert "APass" in text


def test_the_answer_key_is_what_the_installed_packages_have_and_a_target_shows():
    corpus = entries(corpus_folders())
    alone = {entry.name: entry.name for entry in corpus}
    whole = answer_key(corpus, ("TOSA-1.0+INT", "TOSA-1.0+FP", "ethos-u55-128", "ethos-u85-256"), alone)
    assert {*itertools.chain(*whole.values())} == {entry.name for entry in corpus if entry.bug is not None}
    quantized = answer_key(corpus, ("TOSA-1.0+INT", "ethos-u55-128", "ethos-u85-256"), alone)
    floats = {*whole["executorch"]} - {*quantized["executorch"]}
    assert {"float-asinh-of-negative", "int32-clamp-on-fp-profile"} <= floats, "only a float target has shown them"
    assert "cat-repeated-input-dropped" not in floats
    assert {*answer_key(corpus, ("TOSA-1.0+FP",), alone)["executorch"]} >= floats
    whole, small = quantized, answer_key(corpus, ("TOSA-1.0+INT",), alone)
    assert small["executorch"] == tuple(sorted({*whole["executorch"]} - {*_only("ethos-u", corpus)}))
    assert len(small["ethos-u-vela"]) < len(whole["ethos-u-vela"])


def test_a_root_cause_is_found_with_the_first_of_its_entries():
    corpus = entries(corpus_folders())
    named = root_causes(corpus)
    clamps = {named["conv-relu-clamp-dropped"], named["linear-relu-clamp-dropped"]}
    assert len(clamps) == 1, "one correction removes both"
    assert named["vela-u55-reduce-min-of-view"] == named["vela-u55-reduce-min-squeezed"], "only TOSA shows the former"
    key = answer_key(corpus, ("ethos-u55-128",), named)
    assert clamps < {*key["executorch"]}
    found = told_by_cause(course((60, ("vela-u55-reduce-min-of-view", "linear-relu-clamp-dropped"))), named)
    assert found.first == dict.fromkeys({*clamps, named["vela-u55-reduce-min-squeezed"]}, 60)
    assert found.share(key["ethos-u-vela"], 60) == 1 / len(key["ethos-u-vela"])


def _only(prefix, corpus):
    return [
        entry.name
        for entry in corpus
        if entry.status.families and all(name.startswith(prefix) for name in entry.status.families)
    ]


def test_a_motif_that_was_written_for_a_bug_of_the_corpus_takes_no_part():
    corpus = entries(corpus_folders())
    names = [motif.name for motif in cold_motifs(corpus)]
    assert "conv-relu-cat-conv" not in names, "seed 001 links where it comes from"
    assert {"residual", "lstm-gate"} <= {*names} < {motif.name for motif in all_motifs(corpus)}
    assert cold_motifs(()) == all_motifs(())
    assert no_motifs(corpus) == ()


class Timed(InProcess):
    """Every case takes a second and a half, half a second of which is proofs."""

    def run_one(self, task):
        return msgspec.structs.replace(super().run_one(task), processor=1.5, proofs=0.5)


def asked(folder, seconds, told=lambda *_: None, **words):
    return Asked(**{"seed": 3, "targets": ("TOSA-1.0+INT",), "corpus": (), **words}, seconds=seconds, folder=folder,
                 told=told)  # fmt: skip


def test_a_campaign_goes_on_to_its_budget_and_is_the_same_in_pieces(tmp_path):
    said = []
    campaign = Campaign(workers=Timed)
    campaign.go_on(asked(tmp_path / "whole", 9))
    campaign.go_on(asked(tmp_path / "pieces", 4))
    assert [step.processor for step in campaign_steps(tmp_path / "pieces")] == [1.0] * 4
    campaign.go_on(asked(tmp_path / "pieces", 9, lambda seconds, ran: said.append((seconds, ran))))
    assert said == [(number, number) for number in (5, 6, 7, 8, 9)]
    whole, pieces = (
        [(done.number, done.result.case.rpartition("/")[2]) for done in read_run(tmp_path / name).done]
        for name in ("whole", "pieces")
    )
    assert whole == pieces
    assert all(number < STORED for number, _ in whole), "there is no database"
    with pytest.raises(BadInput, match="course of other packages, targets or options"):
        campaign.go_on(asked(tmp_path / "pieces", 99, targets=("TOSA-1.0+FP",)))


def test_what_a_course_saw_before_there_was_an_entry_counts_as_seen_then(tmp_path):
    place = Place(graph="aten", operators=(PlacedOperator(op="pad", facts={}),), here=(0,))
    seen = finding(place=place)

    class Seeing(Timed):
        def run_one(self, task):
            return msgspec.structs.replace(super().run_one(task), findings=(seen,))

    Campaign(workers=Seeing).go_on(asked(tmp_path, 1))
    assert [step.entries for step in campaign_steps(tmp_path)] == [()]
    entry = KnownBug(entry="cpu-pad", bucket=seen.bucket, conditions=(Condition(path=("pad",), graph="aten"),))
    assert [step.entries for step in campaign_steps(tmp_path, [entry])] == [("cpu-pad",)]
    assert CONTESTANTS["campaign"].course(3, tmp_path, [entry]).first == {"cpu-pad": 1.0}


def test_a_campaign_has_as_many_workers_as_jobs(tmp_path):
    made = []

    def workers(jobs):
        made.append(jobs)
        return Timed(jobs)

    campaign = Campaign(workers=workers)
    campaign.go_on(asked(tmp_path, 2, jobs=2))
    campaign.go_on(asked(tmp_path, 3))
    assert made == [2, 1]
    assert [step.processor for step in campaign_steps(tmp_path)] == [1.0] * 3


def test_a_campaign_that_is_stopped_says_that_the_same_command_goes_on(tmp_path):
    def stop(seconds, ran):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match=r"interrupted; the same command goes on$"):
        Campaign(workers=Timed).go_on(asked(tmp_path / "stopped", 9, stop))
    assert [step.processor for step in campaign_steps(tmp_path / "stopped")] == [1.0]


def test_campaigns_differ_in_what_they_draw(tmp_path):
    def drawn(name, campaign):
        campaign.go_on(asked(tmp_path / name, 8, corpus=entries(corpus_folders())))
        return [done.result.case.rpartition("/")[2] for done in read_run(tmp_path / name).done]

    cold = drawn("cold", Campaign(workers=Timed))
    assert len({*cold}) == len(cold) == 8
    others = {"none": Campaign(motifs=no_motifs, workers=Timed), "all": Campaign(motifs=all_motifs, workers=Timed)}
    assert all({*drawn(name, campaign)} != {*cold} for name, campaign in others.items())


def test_mutation_runs_mutants_and_is_the_same_in_pieces(tmp_path):
    seed = corpus_folders()[0]
    campaign = Campaign(sources=(str(next(seed.rglob("case.json"))),), workers=Timed)
    campaign.go_on(asked(tmp_path / "whole", 6))
    for seconds in (2, 6):
        campaign.go_on(asked(tmp_path / "pieces", seconds))
    whole, pieces = (read_run(tmp_path / name).done for name in ("whole", "pieces"))
    names = [done.result.case.rpartition("/")[2] for done in whole]
    assert names == [done.result.case.rpartition("/")[2] for done in pieces]
    assert len({*names}) == 6
    with pytest.raises(BadInput, match="course of other packages, targets or options"):
        Campaign(workers=Timed).go_on(asked(tmp_path / "whole", 9))
    assert CONTESTANTS["mutation"].cold


@pytest.fixture(name="engine")
def make_engine(monkeypatch):
    """An engine that judges every program clean, in 0.1 s each, and draws blocks of two; the blocks that it drew."""
    asked_for = []
    monkeypatch.setattr("generators.programs.draw_programs", lambda *words: asked_for.append(words) or [None, None])

    def run(plan):
        for block in itertools.count():
            accelerator, programs = plan.source(block)
            yield Result(-1, -1, "", 0, "clean", seconds={"draw": 1.0})
            for place, _ in enumerate(programs):
                yield Result(block, place, accelerator, 3, "clean", seconds={"run": 0.1})

    monkeypatch.setattr(rediscovery, "run", run)
    return asked_for


def test_the_engine_goes_on_behind_its_last_whole_block(tmp_path, engine):
    words = {"targets": ("TOSA-1.0+INT", "ethos-u55-128", "ethos-u85-256")}
    Engine().go_on(asked(tmp_path, 2.5, **words))
    assert [(step.processor, step.ran) for step in engine_steps(tmp_path)] == [(1.2, 2)] * 3
    with (tmp_path / STEPS).open("ab") as file:
        file.write(b'{"processor":1.2,"r')  # a kill
    engine.clear()
    Engine().go_on(asked(tmp_path, 4.0, **words))
    assert len(engine_steps(tmp_path)) == 4
    assert engine[:2] == [
        (3, 3, BLOCK, "u85"),
        (3, 4, BLOCK, "u55"),
    ]
    with pytest.raises(BadInput, match="names no Ethos-U"):
        Engine().go_on(asked(tmp_path, 9))


def test_what_a_child_spent_that_died_is_counted_and_what_a_reduction_did_is_not(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(rediscovery, "children_seconds", lambda: now[0])
    clock = rediscovery._EngineClock()
    assert clock.spent(2.0) == 2.0
    now[0] += 63.5  # a child that had told three seconds of it
    assert clock.spent(1.0) == 1.0 + 60.5
    now[0] += 5.0
    clock.leave_out()
    assert clock.spent(1.0) == 1.0


def test_a_course_that_has_had_its_time_is_only_told(tmp_path, engine):
    words = (("ethos-u55-128",), tmp_path, (), lambda line: None)
    [found] = courses(["vela"], [7], 3.0, *words)
    assert (found.contestant, found.seed, found.ran) == ("vela", 7, 6)
    assert (tmp_path / FOLDER / "vela-7" / STEPS).exists()
    engine.clear()
    assert courses(["vela"], [7], 2.0, *words) == [found]
    assert engine == []


def test_courses_hand_on_how_many_workers_there_are(tmp_path, monkeypatch):
    made = []
    idle = dataclasses.replace(CONTESTANTS["campaign"], go_on=lambda asked: made.append(asked.jobs))
    monkeypatch.setitem(CONTESTANTS, "campaign", idle)
    courses(["campaign"], [3], 2.0, ("TOSA-1.0+INT",), tmp_path, (), lambda line: None, 2)
    assert made == [2]


def test_those_that_know_nothing_of_the_corpus_are_the_default():
    assert contestants_named(()) == tuple(name for name in CONTESTANTS if name != "all-motifs")
    assert contestants_named(("vela", "vela")) == ("vela",)
    with pytest.raises(BadInput, match="unknown 'x'; use campaign, "):
        contestants_named(("x",))


def test_the_table_has_a_mark_where_a_course_came_to_it_and_names_who_found_what():
    found = [
        course((100, "a"), (140, "b"), (1200, "v")),
        course((100, ""), name="no-motifs"),
        course((60, "v"), (60, "u"), name="vela"),
    ]
    text = [" ".join(line.split()) for line in lines(found, KEY)]
    at = text.index("4 root causes of executorch: share found after so long on 2 cores")
    assert text[at + 1 : at + 7] == [
        "seed 1 min 2 min 5 min 10 min at last after half",
        "campaign 0 25 % 50 % 50 % 50 % 50 % 12.0 min 2.0 min",
        "no-motifs 0 - - - - 0 % 0.8 min -",
        "only campaign: a, b",
        "nobody: c, d",
        "",
    ]
    at = text.index("1 root cause of ethos-u-vela: share found after so long on 2 cores")
    assert text[at + 4] == "vela 0 100 % - - - 100 % 1.0 min 0.5 min"
    many = {"executorch": tuple(f"cause-{number}" for number in range(21))}
    assert "nobody: 21 of them" in [*lines(found, many)]
    told = as_json(found, KEY)
    assert [item["shares"].keys() for item in told["courses"]] == [{"executorch", "ethos-u-vela"}] * 2 + [
        {"ethos-u-vela"}
    ]
    assert told["courses"][0]["half"] == {"executorch": 240, "ethos-u-vela": 1440}
    assert told["courses"][0]["shares"]["executorch"]["4 h"] is None
