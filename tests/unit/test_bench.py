"""The statistics of a benchmark on hand-made timings, the order of contestants, and what is told."""

import json
import mmap
import os
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.case.case import encode_case
from harness.case.checking import check_case
from harness.case.errors import BadInput
from harness.case.memory import Held, held
from harness.cli.benchmark import memory, output, same_programs, vela_engine
from harness.cli.benchmark.contest import turned
from harness.cli.benchmark.figures import Sample, left_out, pairs, percentile, ratio, row
from harness.cli.benchmark.growth import SIZES, chain, exponent, sizes_of, table
from harness.cli.benchmark.output import Outcome
from harness.cli.benchmark.same_programs import Compared, difference
from harness.cli.benchmark.same_programs import lines as same_programs_lines
from harness.cli.benchmark.vela_engine import Row
from harness.compat.warm.tricks import TRICKS, names
from harness.workers.processes import Death
from harness.workers.protocol import Emitted

SLOW, PLAIN, FAST = "upstream-tester", "plain-sequence", "armdiff"


def sample(contestant, subject, wall, number=1, failed=(), stages=None, processor=None, resident=0):
    return Sample(
        contestant=contestant,
        subject=subject,
        round=number,
        wall=wall,
        processor=wall / 2 if processor is None else processor,
        stages=stages or {},
        failed=dict.fromkeys(failed, "raises"),
        resident=resident,
    )


def three(subject, slow, plain, fast, number=1, failed=((), (), ())):
    times = zip((SLOW, PLAIN, FAST), (slow, plain, fast), failed, strict=True)
    return [sample(name, subject, wall, number, why) for name, wall, why in times]


def test_a_ratio_is_that_of_graphs_per_minute_and_single_pairs_stand_beside_it():
    samples = [*three("a", 6.0, 4.0, 2.0), *three("b", 2.0, 2.0, 2.0), *three("c", 30.0, 8.0, 6.0)]
    found = ratio(samples, SLOW, FAST)
    assert (found.value, found.pairs) == (38.0 / 10.0, 3)
    assert (found.median, found.p10, found.p90) == (3.0, 1.0, 5.0)
    assert ratio(samples, PLAIN, FAST).value == 1.4


def test_rounds_are_summed_and_told_one_by_one():
    samples = [*three("a", 4.0, 1.0, 2.0, 1), *three("a", 9.0, 1.0, 3.0, 2)]
    found = ratio(samples, SLOW, FAST)
    assert found.rounds == (2.0, 3.0)
    assert found.value == 13.0 / 5.0


def test_processor_time_has_its_own_ratio():
    samples = [sample(SLOW, "a", 4.0, processor=1.0), sample(FAST, "a", 2.0, processor=4.0)]
    assert ratio(samples, SLOW, FAST).value == 2.0
    assert ratio(samples, SLOW, FAST, "processor").value == 0.25


def test_a_graph_on_which_one_fails_is_left_out_of_its_pairs_only():
    samples = [*three("a", 4.0, 3.0, 2.0), *three("b", 100.0, 9.0, 1.0, failed=(("u55",), (), ()))]
    assert ratio(samples, SLOW, FAST).value == 2.0
    assert ratio(samples, PLAIN, FAST).value == 4.0
    assert [(item.contestant, item.subject) for item in left_out(samples)] == [(SLOW, "b")]


def test_the_time_until_all_fail_alike_counts_for_all():
    samples = three("a", 4.0, 3.0, 2.0, failed=(("u55",), ("u55",), ("u55",)))
    assert len(pairs(samples, SLOW, FAST)) == 1
    assert left_out(samples) == []


def test_failures_on_different_targets_are_not_alike():
    samples = three("a", 4.0, 3.0, 2.0, failed=(("u55",), ("u85",), ("u55",)))
    assert pairs(samples, SLOW, FAST) == []
    assert len(left_out(samples)) == 3


def test_without_a_pair_there_is_no_ratio():
    assert ratio([sample(SLOW, "a", 1.0)], SLOW, FAST) is None
    assert ratio([*three("a", 1.0, 1.0, 1.0)], SLOW, "nobody") is None


def test_percentiles_are_measured_values():
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(range(1, 11), 90) == 9
    assert percentile(range(1, 11), 10) == 1
    assert percentile([7.0], 90) == 7.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_row_has_rates_shares_and_what_is_added():
    stages = {
        "lower": 5.0,
        "vela": 1.0,
        "leg:tosa-reference": 1.0,
        "probe:deterministic": 1.0,
        "oracles": 0.5,
        "snapshots": 0.3,
    }
    samples = [
        sample(FAST, "a", 10.0, stages=stages, resident=300),
        sample(FAST, "b", 2.0, resident=200),
    ]
    found = row(samples, FAST)
    assert (found.graphs, found.graphs_per_minute, found.median, found.p90) == (2, 10.0, 2.0, 10.0)
    assert found.processor_median == 1.0
    assert found.stages["lower"] == 5.0 / 12.0
    assert found.stages["rest"] == pytest.approx(3.2 / 12.0)  # 1.2 s of a, and all of b
    assert found.added == pytest.approx((0.3 + 3.2) / 6.0)  # snapshots, and what is in no stage
    assert found.resident == 300
    assert row(samples, SLOW) is None


def test_contestants_take_turns():
    assert ["".join(turned("abc", by)) for by in range(4)] == ["abc", "cab", "bca", "abc"]


def outcome(*samples):
    return Outcome(("TOSA-1.0+INT",), 7, 1, (SLOW, PLAIN, FAST), tuple(samples), {FAST: 1 << 20})


def test_json_has_the_ratios_of_generated_graphs_and_apart_from_them_the_models():
    told = output.as_json(outcome(*three("a", 6.0, 4.0, 2.0), *three("attention", 10.0, 10.0, 10.0)))
    assert told["ratios"] == {"vs_upstream_tester": 3.0, "vs_plain_sequence": 2.0}
    assert told["ratios_processor"] == told["ratios"]
    assert told["graphs"] == 1
    assert told["models"]["attention"]["ratios"]["vs_plain_sequence"] == 1.0
    assert told["contestants"][FAST]["graphs_per_minute"] == 30.0
    assert told["contestants"][FAST]["resident_before"] == 1 << 20
    json.dumps(told, allow_nan=False)


def test_lines_name_what_was_left_out():
    failed = three("b", 100.0, 9.0, 1.0, failed=(("ethos-u55-128",), (), ()))
    said = "\n".join(output.lines(outcome(*three("a", 6.0, 4.0, 2.0), *failed)))
    assert "left out: upstream-tester on b, ethos-u55-128: raises" in said
    assert "vs_upstream_tester: 3.00" in said


def test_the_page_marks_every_contestant_on_every_graph_and_escapes():
    page = output.page(outcome(*three("a<b", 6.0, 4.0, 2.0), *three("c", 1.0, 1.0, 1.0)))
    assert page.count('class="k0"') == page.count('class="k1"') == page.count('class="k2"') == 3  # with the legend
    assert "a<b" not in page
    assert "a&lt;b" in page


def grown(operators, own, upstream, number=1, failed=()):
    stages = {"lower": upstream, "oracles": own / 2, "probe:metamorphic": 9.0 if operators == 8 else 0.0}
    wall = own + upstream + stages["probe:metamorphic"]
    return sample(FAST, str(operators), wall, number, failed, stages, processor=own + upstream)


def test_growth_is_the_exponent_over_the_longer_chains():
    samples = [grown(size, 0.01 * size, 0.001 * size**2) for size in (8, 16, 32, 64)]
    found = sizes_of([grown(1, 5.0, 5.0), *samples])  # what is spent once a case decides about the shortest
    assert [size.operators for size in found] == [1, 8, 16, 32, 64]
    assert found[-1].own == pytest.approx(0.64)  # half of it in no stage
    assert found[-1].upstream == pytest.approx(4.096)
    own, upstream = table(found)[-2:]
    assert "what armdiff adds grows with operators^1.00 " in own
    assert "upstream's stages grow with operators^2.00 " in upstream


def test_growth_takes_the_median_round_and_leaves_out_what_failed():
    rounds = [grown(8, own, 1.0, number) for number, own in enumerate((9.0, 1.0, 2.0), 1)]
    [found] = sizes_of([*rounds, grown(16, 1.0, 1.0, failed=("u55",))])
    assert (found.operators, found.own, found.seconds) == (8, 2.0, 3.0)
    assert exponent([(8, 1.0)]) is None


def test_chains_have_their_length_and_pass_the_checker():
    for size in SIZES:
        case = chain(size, "TOSA-1.0+INT")
        check_case(case)
        assert len(case.graph.nodes) == size


def test_tricks_are_chosen_by_name():
    assert names([]) == ()
    assert names(["all"]) == tuple(trick.name for trick in TRICKS)
    assert names([TRICKS[0].name, TRICKS[0].name]) == (TRICKS[0].name,)
    with pytest.raises(BadInput, match="unknown trick 'nothing'"):
        names(["nothing"])


DEAD = "a.json: the process ended with SIGSEGV in stage lower; last output: "


@pytest.mark.parametrize(
    ("warm", "cold", "expected"),
    [
        (Emitted(program=b"ab"), Emitted(program=b"ab"), ""),
        (Emitted(program=b"ab"), Emitted(program=b"abc"), "other bytes: 2 warm, 3 cold"),
        (Emitted(problem="a raises"), Emitted(problem="a raises"), ""),
        (Emitted(problem="a raises"), Emitted(problem="b raises"), "a raises warm, b raises cold"),
        (Emitted(program=b"ab"), Emitted(problem="b raises"), "2 bytes warm, b raises cold"),
        (Emitted(problem=DEAD + "one"), Emitted(problem=DEAD + "other"), ""),
        (Emitted(problem=DEAD + "one"), Emitted(program=b"abc"), f"{DEAD}one warm, 3 bytes cold"),
    ],
)
def test_programs_of_warm_and_cold_workers_are_told_apart(warm, cold, expected):
    assert difference(warm, cold, "ethos-u55-128") == expected


def test_what_differs_between_warm_and_cold_is_told_and_counted():
    rows = [
        Compared(case="a.json", difference="", compiles=True),
        Compared(case="b.json", difference="2 bytes warm, b raises cold", compiles=False),
        Compared(case="c.json", difference="", compiles=True, unstable=True),
    ]
    assert same_programs_lines(rows) == [
        "DIFFERS b.json: 2 bytes warm, b raises cold",
        "not repeatable without tricks either: c.json",
        "3 cases warm and cold: 2 compile, 1 do not; 1 differ",
    ]


def test_a_measurement_of_the_vela_engine_is_told_by_the_minute_and_by_the_program():
    rows = [
        Row("ethos-u55-128", 1, 200, 3, 12.0, {"draw": 1.0, "vela": 2.0, "again": 3.0}),
        Row("ethos-u55-128", 2, 200, 3, 6.0, {"draw": 1.0, "vela": 2.0, "again": 3.0}),
    ]
    text = vela_engine.lines(rows)
    assert "ethos-u55-128       1      200             3     1000     30.0" in text
    assert "ethos-u55-128       2      200             3     2000     30.0" in text
    assert [line.split()[-1] for line in text if line.startswith(("drawing", "Vela", "stream"))] == [
        "5.00",
        "10.00",
        "0.00",
    ]
    assert vela_engine.as_json(rows, 7)["rows"][1]["per_minute"] == 2000


class Answers:
    """Pools in the order in which they are started: each emits the same program of every case."""

    def __init__(self, *programs):
        self.programs, self.started = programs, 0

    def __call__(self, jobs, *, command):
        self.started += 1
        return Emits(self.programs[self.started - 1])


class Emits(nullcontext):
    def __init__(self, program):
        super().__init__(self)
        self.program = program

    def emit(self, task):
        return Emitted(program=self.program)

    def emit_all(self, tasks):
        for task in tasks:
            done = Future()
            done.set_result(self.emit(task))
            yield done


@pytest.mark.parametrize(
    ("again", "expected"),
    [(b"cold", ("other bytes: 4 warm, 4 cold", False)), (b"else", ("", True))],
)
def test_a_difference_counts_only_where_the_plain_sequence_repeats_itself(tmp_path, monkeypatch, again, expected):
    monkeypatch.setattr(same_programs, "Pool", Answers(b"warm", b"cold", again))
    (tmp_path / "a.json").write_bytes(encode_case(chain(1, "TOSA-1.0+INT")))
    [found] = same_programs.compare([tmp_path / "a.json"])
    assert (found.difference, found.unstable) == expected


@pytest.mark.parametrize(
    ("found", "grown"),
    [
        ([100] * 100, 0.0),
        ([10] * 10 + [100] * 80 + [105] * 10, 0.05),
        ([500] * 10 + [200] * 10 + [150] * 80, -0.25),
        ([1] * 19, None),
    ],
)
def test_growth_leaves_out_the_first_tenth(found, grown):
    told = memory.growth([Held(10**12, own) for own in found])
    assert told == (grown if grown is None else pytest.approx(grown)), "pages of libraries are no growth"


class Mortal:
    """A worker that dies of the cases named so, or its fork does; the next one begins with less memory."""

    born = 0

    def __init__(self, limits):
        Mortal.born += 1
        self.serves = Mortal.born

    def ask(self, task):
        self.gone = "fork" not in task.case
        return Death("SIGSEGV", "vela", "") if "dies" in task.case else SimpleNamespace()

    def close(self):
        pass


def test_growth_is_that_of_the_worker_that_ran_most_cases(monkeypatch):
    monkeypatch.setattr(memory, "start_worker", Mortal)
    monkeypatch.setattr(memory, "held", lambda pid: Held(10 * pid, pid))
    monkeypatch.setattr(memory, "known_entries", lambda folders: [])
    monkeypatch.setattr(Mortal, "born", 0)
    names = ["a", "dies", "b", "its fork dies", "c", "dies again", "d"]
    subjects = [SimpleNamespace(name=name, cases=[Path(name)]) for name in names]
    said = []
    found, _ = memory.readings(subjects, said.append)
    assert found == [Held(20, 2)] * 2, "b and c"
    assert [line for line in said if "died" in line] == [
        "dies: the worker died (SIGSEGV); what follows is of another one",
        "its fork dies: the graph's fork of the worker died (SIGSEGV)",
        "dies again: the worker died (SIGSEGV); what follows is of another one",
    ]


def test_memory_is_told_in_mebibytes_and_percent():
    mib = memory.MIB
    one = Held(150 * mib, 100 * mib)
    text = list(memory.lines([one] * 20 + [Held(180 * mib, 110 * mib)] * 20, 300 * mib))
    assert text == [
        "one worker, 40 cases: 180 MiB at the end, of them 110 of its own; 300 MiB at the most (of one case)",
        "growth of its own from cases 5 to 8 to the last 4: +10.0 %",
    ]
    assert list(memory.lines([one], mib))[1] == "growth needs 20 cases"
    assert list(memory.lines([], 0)) == ["no case was run"]
    assert memory.as_json([one], mib) == {
        "cases": 1, "resident": [150 * mib], "own": [100 * mib], "peak": mib, "growth": None,
    }  # fmt: skip


def test_pages_of_files_are_not_a_process_s_own(tmp_path):
    size, slack = 32 << 20, 4 << 20
    (tmp_path / "library").write_bytes(bytes(size))
    before = held(os.getpid())
    with (tmp_path / "library").open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        assert sum(pages[:: mmap.PAGESIZE]) == 0  # every page is looked at
        mapped = held(os.getpid())
    assert mapped.resident >= before.resident + size - slack
    assert mapped.own <= before.own + slack
    made = bytearray(size)
    made[:: mmap.PAGESIZE] = bytes([1]) * (size // mmap.PAGESIZE)
    assert held(os.getpid()).own >= before.own + size - slack
    assert held(1 << 22) == Held(0, 0), "there is no such process"
