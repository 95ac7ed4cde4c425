"""Buckets of a run: merged, counted, put together by cause, ranked, and shown by their smallest case."""

import msgspec
import pytest

from harness.campaign.run_folder import Minimized
from harness.case.case import encode_case
from harness.reports.reporting import make_report
from harness.reports.reporting.histograms import MOST, histograms
from tests.unit.reporting_runs import TARGETS, chain_case, each_target, entry, finding, make_run

U55 = "ethos-u55-128"


def report(folder, cases, corpus=(), **asked):
    return make_report(make_run(folder, cases, **asked), corpus, None)


def on_both(**fields):
    """The same finding on both targets, in the bucket of each."""
    return [finding(target=target, **fields) for target in TARGETS]


def test_one_bug_on_two_targets_is_one_bucket_with_its_hits_counted(tmp_path):
    tosa, u55 = on_both(blamed="RewriteConvPass")
    cases = [
        (chain_case("relu"), {"findings": [tosa]}),
        (chain_case("relu", target=U55), {"findings": [u55]}),
        (chain_case("tanh"), {}),
        (chain_case("tanh", target=U55), {"findings": [u55]}),
    ]
    (bucket,) = report(tmp_path, cases).buckets
    assert bucket.key == "v1/numeric/outside-rounding/run/RewriteConvPass/*/"
    assert (bucket.hits, len(bucket.graphs)) == (3, 2)
    assert bucket.targets == {"TOSA-1.0+INT": 1, "ethos-u55-128": 2}
    assert bucket.where == "stage run, first wrong after RewriteConvPass"


def test_new_before_known_and_values_before_structure_before_crashes(tmp_path):
    words = (("crash", "exception"), ("buffers", "shape"), ("numeric", "outside rounding"), ("numeric", "qmin lost"))
    crash, buffers, numeric, known = (finding(*word, chain=word) for word in words)
    one = each_target("relu", findings=[crash, known, buffers, numeric])
    bugs = report(tmp_path, one, [entry("known-one", known)]).bugs
    assert [(bug.first.oracle, bug.known) for bug in bugs] == [
        ("numeric", False),
        ("buffers", False),
        ("crash", False),
        ("numeric", True),
    ]


def test_what_is_seen_more_often_comes_first_among_equals(tmp_path):
    rare, common = finding(blamed="APass", chain=("a",)), finding(blamed="ZPass", chain=("z",))
    cases = [*each_target("relu", findings=[rare, common]), *each_target("tanh", findings=[common])]
    assert [bug.first.pass_name for bug in report(tmp_path, cases).bugs] == ["ZPass", "APass"]


def test_ten_bugs_with_many_buckets_each_fill_the_first_ten_places(tmp_path):
    found = [
        finding(oracle, f"kind {number}", blamed=f"Pass{place}", chain=("relu",) * (place + 1))
        for place in range(10)
        for number, oracle in enumerate(("numeric", "qparams", "crash"))
    ]
    bugs = report(tmp_path, each_target("relu", findings=found)).bugs
    assert len(bugs) == 10
    assert {bug.cause for bug in bugs} == {f"the pass Pass{place}" for place in range(10)}
    assert all([bucket.oracle for bucket in bug.buckets] == ["numeric", "qparams", "crash"] for bug in bugs)


def test_vela_is_no_pass_its_defects_are_told_apart_by_operators(tmp_path):
    one = finding(blamed="Vela", signature="TABLE", chain=("softmax",))
    two = finding(blamed="Vela", signature="CONV", chain=("conv2d",))
    same = finding("stream", "duplicate", blamed="Vela", signature="CONV", chain=("conv2d",))
    bugs = report(tmp_path, each_target("relu", findings=[one, two, same])).bugs
    assert sorted(len(bug.buckets) for bug in bugs) == [1, 2]
    assert {bug.cause for bug in bugs} == {
        "the operators softmax, blamed on Vela",
        "the operators conv2d, blamed on Vela",
    }


def test_buckets_without_a_pass_belong_together_by_operators(tmp_path):
    found = [finding(kind=kind, chain=("cat", "relu")) for kind in ("one", "two")]
    other = finding(kind="three", chain=("cat",))
    bugs = report(tmp_path, each_target("relu", findings=[*found, other])).bugs
    assert sorted(len(bug.buckets) for bug in bugs) == [1, 2]


def test_a_bucket_without_a_pass_joins_one_with_a_pass_only_in_the_same_graph(tmp_path):
    blamed = finding(blamed="APass", chain=("cat",))
    bare = finding("buffers", "shape", chain=("cat",))
    together = report(tmp_path / "together", each_target("relu", findings=[blamed, bare])).bugs
    assert [len(bug.buckets) for bug in together] == [2]
    cases = [*each_target("relu", findings=[blamed]), *each_target("tanh", findings=[bare])]
    assert [len(bug.buckets) for bug in report(tmp_path / "apart", cases).bugs] == [1, 1]


def test_a_wide_bracket_is_no_pass_to_share(tmp_path):
    found = [finding(blamed="A..B", kind=kind, chain=(kind,)) for kind in ("one", "two")]
    assert len(report(tmp_path, each_target("relu", findings=found)).bugs) == 2


def test_known_findings_of_one_coarse_bucket_belong_to_their_entries(tmp_path):
    first, second, new = (finding(chain=chain) for chain in (("cat",), ("split",), ("relu",)))
    corpus = [entry("cat-bug", first, operators=("cat",)), entry("split-bug", second, operators=("split",))]
    bugs = report(tmp_path, each_target("relu", findings=[first, second, new]), corpus).bugs
    assert [bug.first.entry for bug in bugs] == ["", "cat-bug", "split-bug"]
    assert {bug.first.key for bug in bugs} == {"v1/numeric/outside-rounding/run/-/*/"}
    assert bugs[1].title == "title of cat-bug"
    assert bugs[1].first.upstream == ("https://example.org/1",)


@pytest.mark.parametrize(("line", "known"), [("et120", True), ("default", False), (None, False)])
def test_what_is_known_is_judged_for_the_line_of_the_run(tmp_path, line, known):
    corpus = [entry("old-bug", finding(), lines=("et120",))]
    bugs = report(tmp_path, each_target("relu", findings=[finding()]), corpus, line=line).bugs
    assert [bug.known for bug in bugs] == [known]


def test_information_counts_only_if_the_run_was_strict(tmp_path):
    told = finding("delegation", "on the CPU", information=True)
    cases = each_target("relu", findings=[told])
    lenient = report(tmp_path / "lenient", cases)
    assert lenient.bugs == ()
    assert lenient.not_run.information[0].count == 2
    assert len(report(tmp_path / "strict", cases, strict=True).bugs) == 1


def minimized(folder, *, state="minimized", case="bugs/b/case.json", origin="", **changes):
    """A bucket's minimized case, on disk."""
    (folder / "bugs" / "b").mkdir(parents=True)
    (folder / "bugs" / "b" / "case.json").write_bytes(encode_case(chain_case("abs")))
    key = finding().bucket
    shown = finding(message="the minimized one", chain=("abs",))
    values = {"bucket": key, "final": f"{key}abs", "operators": ("abs",), "origin": origin, "finding": shown, **changes}
    return Minimized(case=case, state=state, **values)


def test_the_minimized_case_is_shown_with_its_final_key_and_neighbour(tmp_path):
    item = minimized(tmp_path, neighbour="bugs/b/case.json", distinguishes="one operator less")
    (bucket,) = report(tmp_path, each_target("relu", "tanh", findings=[finding()]), minimized=[item]).buckets
    assert bucket.shown.minimized
    assert (bucket.shown.path, bucket.final) == ("bugs/b/case.json", item.final)
    assert [node.operator for node in bucket.shown.case.graph.nodes] == ["abs"]
    assert bucket.title == "Outside rounding in abs"
    assert bucket.neighbour.case is not None


@pytest.mark.parametrize("changes", [{"state": "lost"}, {"case": "bugs/none.json"}, {"case": "../../etc/passwd"}])
def test_without_a_minimized_case_the_smallest_one_is_shown(tmp_path, changes):
    run = tmp_path / "run"
    item = minimized(run, **changes)
    cases = [
        *each_target("relu", "tanh", "abs", findings=[finding(chain=("a",))]),
        *each_target("relu", findings=[finding()]),
    ]
    (bucket,) = report(run, cases, minimized=[item]).buckets
    assert not bucket.shown.minimized
    assert [node.operator for node in bucket.shown.case.graph.nodes] == ["relu"]
    assert bucket.shown.path.startswith("cases/")


def test_a_minimized_case_belongs_to_the_bucket_that_its_origin_shows(tmp_path):
    known, new = finding(chain=("cat",)), finding(chain=("relu",))
    cases = [*each_target("tanh", findings=[known]), *each_target("relu", findings=[new])]
    run = make_run(tmp_path, cases)
    origins = [run.done[place].result.case.rsplit("/", 1)[-1] for place in (0, 2)]
    corpus = [entry("cat-bug", known, operators=("cat",))]
    for place, names in ((0, ["cat-bug"]), (1, [""])):
        folder = tmp_path / str(place)
        item = minimized(folder, origin=f"cases/{origins[place]}")
        buckets = report(folder, cases, corpus, minimized=[item]).buckets
        assert [bucket.entry for bucket in buckets if bucket.minimized] == names


def test_a_damaged_case_file_is_told_and_costs_only_its_picture(tmp_path):
    run = make_run(tmp_path, each_target("relu", findings=[finding()]))
    for item in run.done:
        (tmp_path / "cases" / item.result.case.rsplit("/", 1)[-1]).write_text('{"schema": 1, ')
    made = make_report(run, (), None)
    assert made.buckets[0].shown.case is None
    assert "truncated" in made.buckets[0].shown.why
    assert len(made.not_run.unreadable) == 1


def test_the_worst_finding_is_the_one_with_the_largest_error_on_each_target(tmp_path):
    sizes = {TARGETS[0]: (2.0, 9.0), U55: (3.0, 1.0)}
    cases = []
    for operator, place in (("relu", 0), ("tanh", 1)):
        for target in TARGETS:
            found = finding(target=target, measured={"distance": sizes[target][place], "unit": "steps"})
            cases.append((chain_case(operator, target=target), {"findings": [found]}))
    (bucket,) = report(tmp_path, cases).buckets
    assert bucket.worst.finding.measured["distance"] == 9.0
    assert bucket.worst_on[U55].measured["distance"] == 3.0
    assert bucket.sizes[0].bars == ((1.0, 1), (2.0, 1), (4.0, 1), (8.0, 0), (16.0, 1))


def sized(operators, distance, unit="steps", **changes):
    """A graph of these operators with an error of this size, on the first target."""
    found = finding(
        chain=operators,
        message=f"{distance} in {len(operators)}",
        measured={"distance": distance, "unit": unit},
        **changes,
    )
    return (chain_case(*operators), {"findings": [found]})


def test_a_small_case_and_a_worse_one_are_each_shown_with_what_they_show(tmp_path):
    large, small = sized(("relu", "tanh", "abs"), 86.0), sized(("relu",), 3.0)
    (bucket,) = report(tmp_path, [large, small], targets=TARGETS[:1]).buckets
    for shown, (case, fields) in ((bucket.shown, small), (bucket.worst, large)):
        assert shown.case == case
        assert shown.finding.message == fields["findings"][0].message
    assert (bucket.shown.size, bucket.worst.size, bucket.sizes[0].span) == ("3 steps", "86 steps", "3 to 86 steps")
    assert [item.finding.message for item in bucket.seen] == ["3.0 in 1", "86.0 in 3"]


def test_a_case_that_is_the_smallest_and_no_better_than_any_is_shown_once(tmp_path):
    cases = [sized(("relu", "tanh"), 3.0), sized(("relu",), 3.0)]
    (bucket,) = report(tmp_path, cases, targets=TARGETS[:1]).buckets
    assert bucket.worst is bucket.shown
    crash = finding("crash", "exception")
    (bucket,) = report(tmp_path / "crash", each_target("relu", findings=[crash])).buckets
    assert bucket.worst is bucket.shown


def test_errors_of_different_units_are_not_compared(tmp_path):
    cases = [sized(("relu",), 2.0), sized(("tanh",), 5.0), sized(("abs",), 9e9, "epsilons")]
    (bucket,) = report(tmp_path, cases, targets=TARGETS[:1]).buckets
    assert bucket.worst.size == "5 steps"


def test_a_minimized_case_speaks_for_itself_and_a_worse_one_is_told(tmp_path):
    item = minimized(
        tmp_path, finding=finding(message="the minimized one", measured={"distance": 2.0, "unit": "steps"})
    )
    (bucket,) = report(tmp_path, [sized(("relu", "tanh"), 7.0)], minimized=[item], targets=TARGETS[:1]).buckets
    assert (bucket.shown.minimized.final, bucket.shown.finding.message) == (item.final, "the minimized one")
    assert bucket.shown.finding.case == "bugs/b/case.json"
    assert bucket.worst.finding.message == "7.0 in 2"


def test_a_minimized_case_of_an_older_run_does_not_get_another_ones_words(tmp_path):
    item = minimized(tmp_path, finding=None)
    (bucket,) = report(tmp_path, each_target("relu", findings=[finding()]), minimized=[item]).buckets
    assert bucket.shown.minimized is None
    assert bucket.shown.path.startswith("cases/")
    assert bucket.minimized == (item,)


def test_a_bucket_with_one_new_finding_is_new_and_shows_it(tmp_path):
    like, new = (finding(message=chain[0], chain=chain, place=None) for chain in (("relu",), ("tanh", "abs")))
    cases = [(chain_case(*item.chain), {"findings": [item]}) for item in (like, new)]
    corpus = [entry("e", like, operators=("relu",))]
    (one,) = report(tmp_path / "one", cases[:1], corpus, targets=TARGETS[:1]).buckets
    assert (one.state, one.like.name) == ("resembling e", "e")
    (both,) = report(tmp_path / "both", cases, corpus, targets=TARGETS[:1]).buckets
    assert (both.state, both.shown.finding.message, both.like) == ("new", "tanh", None)


def test_crashes_are_named_by_their_exception(tmp_path):
    crash = finding("crash", "exception", stage="lower", blamed="APass", measured={"type": "KeyError"})
    (bug,) = report(tmp_path, each_target("relu", findings=[crash])).bugs
    assert bug.title == "KeyError during lower in relu"
    assert bug.first.where == "stage lower, raised in APass"


def test_histograms_keep_units_apart_and_count_what_is_not_finite():
    steps = [{"distance": 1, "unit": "steps"}, {"distance": 255.0, "unit": "steps"}, {"unit": "steps"}]
    epsilons = [{"excess": 2.0**20, "unit": "epsilons"}, {"excess": 0.0, "unit": "epsilons"}]
    first, second = histograms([*steps, *epsilons, {"nodes": 3}])
    assert (first.unit, first.count, first.without, first.largest) == ("steps", 3, 1, 255.0)
    assert [limit for limit, count in first.bars if count] == [1.0, 256.0]
    assert len(second.bars) <= MOST
    assert sum(count for _, count in second.bars) == 2
    assert second.bars[-1][0] >= 2.0**20


def test_histograms_do_not_trip_over_what_is_no_number():
    (only,) = histograms([{"distance": "far", "unit": 3}, {"distance": None, "unit": 3}, {"distance": True, "unit": 3}])
    assert (only.unit, only.bars, only.without) == ("3", (), 3)


def test_the_same_run_gives_the_same_report(tmp_path):
    cases = each_target("relu", findings=[finding(), finding("crash", "exception")])
    run = make_run(tmp_path, cases)
    one, two = make_report(run, (), None), make_report(run, (), None)
    assert msgspec.to_builtins(one.buckets[0].worst) == msgspec.to_builtins(two.buckets[0].worst)
    assert one.bugs == two.bugs
