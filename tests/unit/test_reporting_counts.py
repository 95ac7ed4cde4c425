"""What a report counts: coverage, outcomes, time, what was left undone, and the previous run."""

import hypothesis
import msgspec
import pytest

from generators.recipes import DRAWN_WORDS, recipes
from harness.campaign.run_folder import Minimized
from harness.campaign.steering import pairs
from harness.case.case import Distribution, case_digest
from harness.case.registry import calibration_kinds, operators
from harness.reports.reporting import make_report
from harness.reports.reporting.coverage import calibrated, recipe_words
from tests.unit.reporting_runs import TARGETS, chain_case, drawn, each_target, entry, finding, join_case, make_run


def report(folder, cases=(), corpus=(), previous=None, **asked):
    return make_report(make_run(folder, cases, **asked), corpus, previous)


def reach(made, what):
    return next(item for item in made.coverage.reaches if item.what == what)


def test_pairs_are_neighbours_and_constants_are_producers():
    assert pairs(join_case().graph) == {("split", "cat"), ("full", "cat")}
    assert pairs(chain_case("relu", "tanh", "relu").graph) == {("relu", "tanh"), ("tanh", "relu")}


def test_a_calibration_meets_every_operator_that_it_reaches_and_no_other():
    assert calibrated(join_case()) == {("split", "uniform"), ("cat", "uniform"), ("tanh", "zero")}
    assert calibrated(chain_case("relu", "tanh")) == {("relu", "uniform"), ("tanh", "uniform")}


def test_coverage_counts_graphs_once_whatever_the_targets(tmp_path):
    cases = [*each_target("relu", "relu"), (join_case(), {}), (join_case(TARGETS[1]), {})]
    made = report(tmp_path, cases)
    counts = reach(made, "operators").counts
    assert (counts["relu"], counts["split"], counts["sigmoid"]) == (1, 1, 0)
    assert made.coverage.graphs == 2
    assert made.coverage.pairs.at("relu", "relu") == 1
    assert made.coverage.recipes == {"a8w8": 1, "a8w8,qmin=-127,float=…": 1}
    assert "sigmoid" in reach(made, "operators").never
    assert "relu" not in reach(made, "operators").never
    assert reach(made, "ranks").never == ("1", "3", "4", "5")
    assert "random" in reach(made, "constant kinds").never
    assert "per-tensor" in reach(made, "recipe words").never
    assert set(made.coverage.pairs.never()) == {"relu", "split", "full"}
    assert "sigmoid" in made.coverage.pairs.never()["relu"]


def test_the_universe_is_what_the_registries_hold(tmp_path):
    made = report(tmp_path)
    assert tuple(reach(made, "operators").counts) == tuple(operators())
    assert set(reach(made, "calibration kinds").counts) == set(calibration_kinds()) - {"recorded"}
    assert reach(made, "operators").never == tuple(operators())


def test_drawn_graphs_reach_nothing_beyond_the_universe(tmp_path):
    cases = [(case, {}) for graph in drawn(30) for case in graph]
    made = report(tmp_path, cases)
    empty = report(tmp_path / "empty")
    for what in ("operators", "constant kinds", "calibration kinds", "recipe words"):
        assert registered(reach(made, what).counts) == set(reach(empty, what).counts), what
        assert any(reach(made, what).counts.values())
    assert registered(made.coverage.pairs.rows) == set(empty.coverage.pairs.rows)


def registered(names):
    """Without the ATen overloads of steps that write (``generators.state``), which no entry is about."""
    return {name for name in names if not name.startswith("aten.")}


def test_the_words_of_the_universe_are_those_that_are_drawn():
    seen = set()

    @hypothesis.seed(0)
    @hypothesis.settings(max_examples=300, database=None, deadline=None, phases=[hypothesis.Phase.generate])
    @hypothesis.given(recipes(chain_case("relu", "tanh").graph))
    def draw(recipe):
        seen.update(recipe_words(chain_case("relu", recipe=recipe)))

    draw()
    assert seen == set(DRAWN_WORDS)


def test_a_graph_that_is_no_test_reaches_nothing(tmp_path):
    made = report(tmp_path, each_target("relu", invalid="fails in eager"))
    assert made.coverage.graphs == 0
    assert reach(made, "operators").counts["relu"] == 0


def test_outcomes_exclude_each_other_and_crashes_are_counted_beside_them(tmp_path):
    known, crash = finding("buffers", "shape"), finding("crash", "exception")
    rows = [{}, {"findings": [known]}, {"findings": [known, crash]}, {"invalid": "no"}, {"problem": "no"}]
    cases = [(chain_case(*["relu"] * (place + 1)), fields) for place, fields in enumerate(rows)]
    outcomes = report(tmp_path, cases, [entry("e", known)], targets=TARGETS[:1]).coverage.outcomes
    assert outcomes.rows == TARGETS[:1]
    assert outcomes.counts[TARGETS[0]] == {"clean": 1, "known": 1, "new": 1, "invalid": 1, "problem": 1, "crash": 1}


def test_a_case_without_a_target_has_a_row_of_its_own(tmp_path):
    run = make_run(tmp_path, each_target("relu", problem="no worker"))
    done = tuple(
        msgspec.structs.replace(item, result=msgspec.structs.replace(item.result, target="")) for item in run.done
    )
    made = make_report(msgspec.structs.replace(run, done=done), (), None)
    assert made.coverage.outcomes.rows == ("no target",)


def test_only_complete_graphs_count_and_the_others_are_told(tmp_path):
    made = report(tmp_path, [*each_target("relu"), (chain_case("tanh"), {})], max_examples=5)
    assert made.judged.graphs == 1
    assert "1 graph is incomplete: not all of its 2 cases ran." in made.not_run.left
    assert "1 of the 5 graphs that were asked for are complete." in made.not_run.left
    assert "1 graph, 3 cases" in made.sentence


def test_time_has_minimization_as_a_stage_and_the_longest_first(tmp_path):
    spent = Minimized(
        bucket="b", final="b", origin="o", case="c", operators=(), state="stopped", seconds=9.0, neighbour=None
    )
    stages = report(tmp_path, each_target("relu"), minimized=[spent, msgspec.structs.replace(spent, bucket="c")]).timing
    assert list(stages.stages.items()) == [("minimization", 18.0), ("lower", 2.0)]
    assert stages.per_minute == 1.0


def test_throughput_counts_a_graph_when_its_last_case_is_done(tmp_path):
    cases = [item for _ in range(20) for item in each_target("relu")]
    timing = report(tmp_path, cases).timing
    assert len(timing.rates) == 2
    assert timing.slice_seconds == 40.0
    # graph g is done after 4 (g + 1) seconds; the one that is done at 40 s belongs to the second slice
    assert timing.rates == (13.5, 16.5)


def test_legs_that_never_ran_are_in_the_verdict_with_their_reason_in_the_table(tmp_path):
    made = report(tmp_path, each_target("relu"))
    assert made.not_run.silent_legs == ("ethos-u-fvp",)
    assert made.sentence == "No new bugs and no known ones in 1 graph, 2 cases; ethos-u-fvp never ran."
    row = next(row for row in made.not_run.legs if row.name == "ethos-u-fvp")
    assert [(reason.text, reason.count) for reason in row.why] == [("no FVP here", 2)]


def test_an_empty_run_says_so(tmp_path):
    made = report(tmp_path)
    assert made.sentence == "Nothing was run: the run ended before its first case was done."
    assert made.timing.per_minute == 0.0


@pytest.mark.parametrize(
    ("state", "sentence", "verdict"),
    [
        ("interrupted", "The run was interrupted; this is what was done until then.", "; interrupted."),
        (
            "running",
            "The run had not ended when this report was made: it still runs, or was killed.",
            "; not ended.",
        ),
    ],
)
def test_a_run_that_did_not_end_is_told(tmp_path, state, sentence, verdict):
    made = report(tmp_path, each_target("relu"), state=state, left=["two buckets were not minimized"])
    assert made.not_run.left[0] == sentence
    assert made.not_run.left[-1] == "two buckets were not minimized"
    assert made.sentence.endswith(verdict)


def test_reasons_are_counted_whatever_their_numbers(tmp_path):
    cases = [
        *each_target("relu", invalid="n3: cannot multiply 2x4"),
        *each_target("tanh", invalid="n12: cannot multiply 8x16"),
        *each_target("abs", invalid="something else"),
        *each_target("neg", problem="out of memory", unrepeated=(finding(),)),
    ]
    not_run = report(tmp_path, cases, problems=["out of memory"]).not_run
    assert [(item.text, item.count) for item in not_run.invalid] == [
        ("n3: cannot multiply 2x4", 4),
        ("something else", 2),
    ]
    assert not_run.invalid[0].case == f"{case_digest(cases[0][0])}.json"
    assert [(item.text, item.count) for item in not_run.problems] == [("out of memory", 3)]
    assert not_run.unrepeated[0].count == 2
    assert not_run.unrepeated[0].text.startswith("v1/numeric/outside-rounding/run/-/*/: 3 of 4")


def test_buckets_are_compared_with_the_previous_run_regardless_of_the_target(tmp_path):
    stays, comes, goes = (finding(kind=kind) for kind in ("stays", "comes", "goes"))
    elsewhere = finding(kind="stays", target="ethos-u55-128")
    before = make_run(tmp_path / "before", each_target("relu", findings=[elsewhere, goes]))
    now = report(tmp_path / "now", each_target("relu", findings=[stays, comes]), [entry("e", stays)], before)
    rows = {
        name: [(row.key.split("/")[2], row.before, row.hits, row.known) for row in getattr(now.previous, name)]
        for name in ("new", "gone", "still")
    }
    assert rows == {
        "new": [("comes", 0, 2, False)],
        "gone": [("goes", 2, 0, False)],
        "still": [("stays", 2, 2, True)],
    }
    assert now.previous.caveats == ()
    assert now.previous.releases == {}


def test_what_makes_runs_incomparable_is_said(tmp_path):
    before = make_run(
        tmp_path / "before", each_target("relu"), seed=1, corrections=("a-fix",), state="interrupted", line="et141"
    )
    info = msgspec.structs.replace(before.info, releases={**before.info.releases, "vgf": "1"})
    now = report(
        tmp_path / "now",
        [(chain_case("relu"), {})],
        targets=TARGETS[:1],
        previous=msgspec.structs.replace(before, info=info),
    )
    text = " ".join(now.previous.caveats)
    assert "seed 1, shard 1/1 before; seed 0, shard 1/1 now" in text
    assert "TOSA-1.0+INT, ethos-u55-128 before, TOSA-1.0+INT now" in text
    assert "a-fix before, none now" in text
    assert "did not end by itself" in text
    assert now.previous.releases == {"executorch": ("1.4.1", "1.5.1"), "vgf": ("1", "none")}


def test_a_longer_run_with_the_same_seed_saw_more(tmp_path):
    before = make_run(tmp_path / "before", [*each_target("relu"), *each_target("tanh")])
    caveats = report(tmp_path / "now", each_target("relu"), previous=before).previous.caveats
    assert caveats == ("The previous run has 2 graphs and this one 1: the longer one saw more.",)


def test_operators_without_an_input_meet_no_calibration():
    case = msgspec.structs.replace(chain_case("relu"), calibration={"x": Distribution(kind="zero")})
    lonely = msgspec.structs.replace(case.graph.nodes[0], name="n9", operator="full", inputs=())
    graph = msgspec.structs.replace(case.graph, nodes=(*case.graph.nodes, lonely))
    assert calibrated(msgspec.structs.replace(case, graph=graph)) == {("relu", "zero")}
