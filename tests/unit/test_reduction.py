"""Reduction on pure data: what cuts propose, that a search ends at something small, checkpoints, neighbours."""

from pathlib import Path

import msgspec
import pytest

from generators.cases import draw_block
from harness.campaign.campaign import Options
from harness.campaign.reduction import criterion
from harness.campaign.reduction.data import data_cuts
from harness.campaign.reduction.harm import harm_of, sharing
from harness.campaign.reduction.measure import distance, measure
from harness.campaign.reduction.minimizing import Terms, minimize
from harness.campaign.reduction.search import KINDS, begin, reduce_case
from harness.campaign.reduction.sizes import attribute_cuts, size_cuts
from harness.campaign.reduction.structure import structural_cuts
from harness.case.case import Case, Constant, Distribution, Graph, Input, Node, Seeds, case_digest, encode_case
from harness.case.chains import contains_in_order, operator_chain
from harness.case.checking import check_case, value_types
from harness.case.editing import with_graph
from harness.case.errors import BadInput
from harness.case.reading import read_case
from harness.reports.concluding import Concluding
from harness.triage.corpus import default_corpus
from harness.triage.findings import Finding
from harness.workers.protocol import CaseResult
from tests.unit.reporting_runs import entry


def node(name, operator, *inputs, **attributes):
    return Node(name=name, operator=operator, inputs=inputs, attributes=attributes)


def case_of(nodes, outputs, *, shape=(2, 8), constants=(), recipe="a8w8", calibration=None, **words):
    graph = Graph(inputs=(Input(name="x", shape=shape),), constants=constants, nodes=nodes, outputs=outputs)
    kind = calibration or Distribution(kind="uniform", parameters={"low": -1.0, "high": 1.0})
    return Case(graph=graph, calibration={"x": kind}, recipe=recipe, **words)


CHAIN = case_of(
    (node("a", "relu", "x"), node("b", "sigmoid", "a"), node("c", "minimum", "b", "x"), node("d", "neg", "c")),
    ("d", "b"),
)


def drawn(count):
    return [cases[0] for cases in draw_block(5, 0, count, ("TOSA-1.0+INT",))]


def shows_in_order(*operators):
    def judge(cases):
        return ["shows" if contains_in_order(operator_chain(case.graph), operators) else "clean" for case in cases]

    return judge


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_of_a_drawn_case_is_valid_and_another_case(kind):
    proposed = 0
    for case in drawn(8):
        for cut in kind(case):
            check_case(cut.case)
            assert case_digest(cut.case) != case_digest(case), cut.what
            assert cut.what
            proposed += 1
    assert proposed > 20


def test_a_chain_is_cut_at_its_ends_and_in_its_middle():
    words = {cut.what: [item.operator for item in cut.case.graph.nodes] for cut in structural_cuts(CHAIN)}
    assert words["b as the only output"] == ["relu", "sigmoid"]
    assert words["an input in place of b"] == ["minimum", "neg"]
    assert words["a in place of b (sigmoid)"] == ["relu", "minimum", "neg"]
    first = next(structural_cuts(CHAIN))
    assert len(first.case.graph.nodes) == 1


def test_a_write_stays_while_what_it_writes_into_is_read_and_is_cut_by_itself():
    case = read_case(default_corpus() / "found" / "write-into-view-lost")
    assert with_graph(case, case.graph).graph == case.graph
    chains = [[node.operator for node in cut.case.graph.nodes] for cut in structural_cuts(case)]
    assert ["aten.relu.default", "aten.add.Tensor"] in chains  # without the write
    assert ["aten.relu.default", "aten.slice.Tensor", "aten.copy_.default", "aten.add.Tensor"] in chains
    assert ["aten.relu.default"] not in chains  # its value is written into


def test_what_becomes_an_input_is_no_output_any_more():
    [cut] = [cut for cut in structural_cuts(CHAIN) if cut.what == "an input in place of b"]
    assert cut.case.graph.outputs == ("d",)
    assert {item.name for item in cut.case.graph.inputs} == {"x", "in_b"}
    assert set(cut.case.calibration) == {"x", "in_b"}


def test_nodes_that_a_recipe_leaves_float_leave_it_with_the_graph():
    case = msgspec.structs.replace(CHAIN, recipe="a8w8,float=a|d")
    assert {cut.case.recipe for cut in structural_cuts(case) if cut.what == "b as the only output"} == {"a8w8,float=a"}


def test_a_size_goes_down_everywhere_at_once_with_a_view_that_follows():
    flat = case_of((node("a", "view", "x", shape=[16]), node("b", "relu", "a")), ("b",))
    found = [cut.case for cut in size_cuts(flat) if cut.what == "1 for 8 in all shapes"]
    assert [value_types(case.graph)["b"].shape for case in found] == [(2,)]


def test_a_literal_keeps_its_first_values():
    literal = Constant(name="k", shape=(4,), kind="literal", parameters={"values": [1.0, 2.0, 3.0, 4.0]})
    case = case_of((node("a", "minimum", "x", "k"),), ("a",), shape=(3, 4), constants=(literal,))
    [cut] = [cut for cut in size_cuts(case) if cut.what == "2 for 4 in all shapes"]
    assert cut.case.graph.constants[0].parameters["values"] == [1.0, 2.0]


def test_attributes_come_down_one_by_one_and_together():
    conv = node(
        "a",
        "conv2d",
        "x",
        out_channels=2,
        kernel=[3, 3],
        stride=[2, 1],
        padding=[1, 1],
        dilation=[1, 1],
        groups=1,
        bias=True,
    )
    case = case_of((conv,), ("a",), shape=(1, 2, 6, 6))
    words = {cut.what for cut in attribute_cuts(case)}
    for wanted in ("kernel [1, 1]", "padding [0, 0]", "stride [1, 1]", "bias False", "out_channels 1"):
        assert any(item.startswith(f"{wanted} of a (conv2d)") for item in words), wanted


def test_data_becomes_plain():
    case = case_of(
        (node("a", "relu", "x"),),
        ("a",),
        recipe="a16w8,per-tensor",
        samples=3,
        calibration=Distribution(kind="outlier", parameters={"scale": 0.5, "outlier": 20.0}),
        seeds=Seeds(weights=3),
    )
    words = {cut.what for cut in data_cuts(case)}
    assert "recipe a16w8 in place of a16w8,per-tensor" in words
    assert "recipe a8w8,per-tensor in place of a16w8,per-tensor" in words
    assert "1 calibration sample in place of 3" in words
    assert "seed 0 of weights" in words
    assert "input x uniform (low -1.0, high 1.0) in place of outlier (scale 0.5, outlier 20.0)" in words


def test_a_search_ends_where_no_cut_helps():
    found = reduce_case(begin("bucket", CHAIN), shows_in_order("relu", "neg"))
    assert found.state == "minimized"
    assert [item.operator for item in found.case.graph.nodes] == ["relu", "neg"]
    assert found.case.graph.inputs[0].shape == (1, 1)
    for kind in KINDS:
        for cut in kind(found.case):
            if measure(cut.case) < measure(found.case):
                assert shows_in_order("relu", "neg")([cut.case]) == ["clean"]


@pytest.mark.parametrize("width", [1, 3])
def test_drawn_cases_come_down_to_what_shows(width):
    for case in drawn(6):
        operator = case.graph.nodes[-1].operator
        found = reduce_case(begin("bucket", case), shows_in_order(operator), width=width)
        assert operator in operator_chain(found.case.graph)
        assert len(found.case.graph.nodes) <= 2  # an operator may need another for its type
        assert measure(found.case) <= measure(case)


def test_the_neighbour_is_the_smallest_change_that_makes_it_go_away():
    def judge(cases):
        return ["shows" if case.recipe == "a8w8,qmin=-127" and case.graph.nodes else "clean" for case in cases]

    found = reduce_case(begin("bucket", msgspec.structs.replace(CHAIN, recipe="a8w8,qmin=-127")), judge)
    assert len(found.case.graph.nodes) == 1
    assert found.distinguishes == "recipe a8w8 in place of a8w8,qmin=-127"
    assert distance(found.case, found.neighbour) == 1


def test_what_ran_otherwise_is_no_neighbour():
    def judge(cases):
        return ["shows" if len(case.graph.nodes) == 4 else "other" for case in cases]

    found = reduce_case(begin("bucket", CHAIN), judge)
    assert found.neighbour is None


def test_a_case_that_does_not_show_again_is_lost():
    assert reduce_case(begin("bucket", CHAIN), shows_in_order("conv2d")).state == "lost"


def test_a_search_goes_on_from_its_checkpoint_without_trying_again(tmp_path):
    file, asked = tmp_path / "reduction.json", []

    def judge(cases):
        asked.extend(map(case_digest, cases))
        if len(asked) == 6:
            raise KeyboardInterrupt
        return shows_in_order("relu", "neg")(cases)

    with pytest.raises(KeyboardInterrupt):
        reduce_case(begin("bucket", CHAIN, file), judge, checkpoint=file)
    found = reduce_case(begin("bucket", CHAIN, file), judge, checkpoint=file)
    lost = asked[5]  # was running when the search was interrupted
    assert sorted(asked) == sorted([*set(asked), lost])
    assert found.case == reduce_case(begin("bucket", CHAIN), shows_in_order("relu", "neg")).case
    assert begin("bucket", CHAIN, file).state == "minimized"


def test_a_search_stops_when_its_time_is_over():
    found = reduce_case(begin("bucket", CHAIN), shows_in_order("relu", "neg"), until=0.0)
    assert found.state == "stopped"
    assert found.tries == 2


@pytest.mark.parametrize("text", ["{", "{}", '{"bucket": "b", "origin": "o", "case": {}}'])
def test_a_damaged_checkpoint_is_one_clear_line(tmp_path, text):
    file = tmp_path / "reduction.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"reduction\.json: is no checkpoint"):
        begin("bucket", CHAIN, file)


def test_a_checkpoint_of_another_case_is_refused(tmp_path):
    file = tmp_path / "reduction.json"
    reduce_case(begin("bucket", CHAIN, file), shows_in_order("neg"), checkpoint=file)
    with pytest.raises(BadInput, match="another case or bucket"):
        begin("other", CHAIN, file)


LEGS = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u55/"


class Ran:
    """A pool whose every case shows one finding."""

    jobs = 1

    def __init__(self, finding):
        self.finding = finding

    def run(self, tasks):
        for task in tasks:
            yield CaseResult(case=task.case, target="ethos-u55-128", legs={}, findings=(self.finding,))


@pytest.mark.parametrize(
    ("first", "later", "verdict"),
    [
        (f"{LEGS}input", f"{LEGS}CONCAT", "shows"),  # what follows the wrong step was cut away
        (f"{LEGS}input", f"{LEGS}input", "shows"),
        (f"{LEGS}input", f"{LEGS.replace('u55', 'u85')}input", "other"),
        ("v1/stream/overlap/run/Vela/ethos-u55/CONV", "v1/stream/overlap/run/Vela/ethos-u55/POOL", "other"),
        ("v1/numeric/x,-out-of-range-input-only/run/-/tosa-int/", "v1/numeric/x/run/-/tosa-int/", "shows"),
    ],
)
def test_a_cut_case_shows_the_bug_whatever_follows_the_wrong_step(tmp_path, first, later, verdict):
    def finding(bucket):
        words = {"oracle": bucket.split("/")[1], "kind": "k", "stage": "run", "message": "m", "recipe": "a8w8"}
        return Finding(bucket=bucket, target="ethos-u55-128", case="c.json", **words)

    judge = criterion.BucketJudge(finding(first), (), Ran(finding(later)), tmp_path)
    assert judge([CHAIN]) == [verdict]
    assert [item.bucket for item in judge.found.values()] == [later] * (verdict == "shows")


@pytest.mark.parametrize(
    ("first", "later", "verdict"),
    [
        ("inside", "numeric", "shows"),  # the graph is small enough for its output to be judged
        ("inside", "inside", "shows"),
        ("inside", "quality", "other"),
        ("numeric", "inside", "other"),
    ],
)
def test_a_wrong_value_inside_may_come_out_of_a_smaller_graph(tmp_path, first, later, verdict):
    wrong = evidence(later, signature="aten.linear" if later == "inside" else "", distance=2.0, unit="steps")
    whole = evidence(
        first, pass_name=None, signature="aten.mul" if first == "inside" else "", distance=1.0, unit="steps"
    )
    if (first, later) == ("inside", "inside"):
        wrong = whole
    assert criterion.BucketJudge(whole, (), Ran(wrong), tmp_path)([CHAIN]) == [verdict]
    other = msgspec.structs.replace(wrong, bucket=wrong.bucket.replace("outside-rounding", "qmin-lost"))
    assert criterion.BucketJudge(whole, (), Ran(other), tmp_path)([CHAIN]) == ["other"]


# ---- harm -----------------------------------------------------------------------------------------------------------


def evidence(oracle="numeric", kind="outside rounding", pass_name="NegPass", recipe="a8w8", signature="", **measured):
    bucket = f"v1/{oracle}/{kind.replace(' ', '-')}/run/{pass_name}/tosa-int/{signature}"
    return Finding(
        bucket=bucket, oracle=oracle, kind=kind, target="TOSA-1.0+INT", stage="run", pass_name=pass_name,
        message="m", recipe=recipe, measured=measured, case="c.json",
    )  # fmt: skip


def values(distance, unit="steps", **words):
    return evidence(distance=distance, unit=unit, **words)


def ratio(number):
    return msgspec.structs.replace(SCALE, measured={"ratio": number})


SCALE = evidence("qparams", "scale differs", signature="aten.neg.default")
OUT_OF_RANGE = "outside rounding, out-of-range input only"


class Shows:
    """A pool whose cases show the findings of a list, one list a case in turn."""

    jobs = 1

    def __init__(self, *rows):
        self.rows = list(rows)

    def run(self, tasks):
        for task in tasks:
            yield CaseResult(case=task.case, findings=tuple(self.rows.pop(0)))


def verdict(tmp_path, first, later, finding=None):
    """What a judge says of a case that shows ``later``, where the first one showed ``first``."""
    finding = finding or first[0]
    harm = harm_of([item for item in first if sharing(finding, ())(item)])
    judge = criterion.BucketJudge(finding, (), Shows(later), tmp_path, harm=harm)
    return judge([CHAIN]), [*judge.found.values()]


@pytest.mark.parametrize(
    ("first", "later", "shows"),
    [
        ([SCALE, values(86.0)], [SCALE], False),  # a scale ratio of 0.99975 is left
        ([SCALE, values(86.0)], [SCALE, values(1.0)], False),
        ([SCALE, values(86.0)], [SCALE, values(42.0)], False),
        ([SCALE, values(86.0)], [SCALE, values(43.0)], True),
        ([SCALE, values(86.0)], [values(86.0)], False),  # that is another bucket
        ([SCALE, values(86.0)], [SCALE, values(86.0, kind=OUT_OF_RANGE)], False),
        ([SCALE, values(86.0, kind=OUT_OF_RANGE)], [SCALE, values(50.0)], True),
        ([SCALE], [SCALE], True),
        ([ratio(16.0)], [ratio(0.25)], True),
        ([ratio(16.0)], [ratio(0.99975)], False),
        ([ratio(16.0), values(9.0)], [ratio(0.99975), values(9.0)], True),  # values say it better
        ([SCALE], [SCALE, values(2.0)], True),
        ([SCALE, values(86.0, pass_name="PadPass")], [SCALE], True),  # that was another bug's
        ([SCALE, values(86.0, pass_name="APass..BPass")], [SCALE], True),
        ([values(86.0)], [values(43.0)], True),
        ([values(86.0)], [values(42.0)], False),
        ([values(86.0, unit="units")], [values(50.0)], True),
        ([values(3.0)], [evidence("numeric")], True),  # not finite: nothing was measured
        ([values(20000.0, recipe="a16w8")], [values(64.0)], True),  # int8 has no 10,000 steps
        ([values(20000.0, recipe="a16w8")], [values(63.0)], False),
        ([values(20000.0, recipe="a16w8")], [values(64.0, recipe="a16w8")], False),
        ([values(80.0, recipe="a16w8")], [values(40.0)], True),
        ([values(128.0)], [values(2.0**21, unit="epsilons")], True),  # a quarter of the largest value
        ([values(128.0)], [values(2.0**20, unit="epsilons")], False),
    ],
)
def test_a_smaller_case_shows_as_bad_evidence(tmp_path, first, later, shows):
    assert verdict(tmp_path, first, later)[0] == ["shows" if shows else "other"]


def test_the_worst_evidence_is_what_a_smaller_case_is_reported_by(tmp_path):
    _, [found] = verdict(tmp_path, [SCALE, values(86.0)], [SCALE, values(50.0), values(60.0, signature="x")])
    assert found == values(60.0, signature="x")


def test_vela_s_findings_share_a_cause_where_they_share_an_operation():
    wrong = evidence(pass_name="Vela", delegate="a", operation=3, distance=9.0, unit="units")
    twice, elsewhere, unplaced = (
        evidence("stream", "duplicate", "Vela", delegate="a", **at) for at in ({"operation": 3}, {"operation": 4}, {})
    )
    assert sharing(twice, ())(wrong)
    assert not sharing(elsewhere, ())(wrong)
    assert not sharing(unplaced, ())(wrong)


def test_a_probe_s_values_are_no_harm_of_what_is_searched_without_probes():
    twin = evidence("metamorphic", "twin", distance=9.0, unit="steps")
    assert not sharing(SCALE, ())(twin)
    assert sharing(twin, ())(SCALE)


def test_a_search_that_goes_on_keeps_to_the_harm_that_it_began_with(tmp_path):
    file = tmp_path / "reduction.json"
    reduce_case(begin("b", CHAIN, file, harm_of([values(86.0)])), shows_in_order("neg"), until=0.0, checkpoint=file)
    assert begin("b", CHAIN, file, harm_of([values(43.0)])).harm == harm_of([values(86.0)])


def test_minimizing_ends_at_the_smallest_case_that_keeps_the_harm(tmp_path):
    """The distance is the number of operators times ten; the scale alone is off without any."""

    class Chain:
        jobs = 1

        def run(self, tasks):
            for task in tasks:
                nodes = len(read_case(Path(task.case)).graph.nodes)
                yield CaseResult(case=task.case, findings=(SCALE, *([values(10.0 * nodes)] if nodes else [])))

    (tmp_path / "start.json").write_bytes(encode_case(CHAIN))
    start = msgspec.structs.replace(SCALE, case=str(tmp_path / "start.json"))
    made, found = minimize(start, Chain(), tmp_path / "small", Terms(), harm=harm_of([SCALE, values(40.0)]))
    assert (made.bucket, len(made.operators)) == (SCALE.bucket, 2)
    assert (found.oracle, found.measured["distance"]) == ("numeric", 20.0)


def test_the_smallest_case_is_judged_once_more_with_what_proves_a_known_bug(tmp_path):
    """While it was cut nothing was proved: the last run alone is told what is known."""
    asked = []

    class Proving:
        jobs = 1

        def run(self, tasks):
            for task in tasks:
                asked.append(task)
                proved = {"state": "known", "entry": "e", "proof": "correction c alone takes it away"}
                yield CaseResult(
                    case=task.case, findings=(msgspec.structs.replace(SCALE, **(proved if task.known else {})),)
                )

    (tmp_path / "start.json").write_bytes(encode_case(CHAIN))
    start = msgspec.structs.replace(SCALE, case=str(tmp_path / "start.json"))
    corpus = [entry("e", values(1.0))]
    made, found = minimize(start, Proving(), tmp_path / "small", Terms(corpus))
    assert [len(task.known) for task in asked] == [*[0] * (len(asked) - 1), 1]
    assert asked[-1].case == made.case
    assert made.finding == found
    assert (found.state, found.entry, found.proof) == ("known", "e", "correction c alone takes it away")
    _, found = minimize(start, Proving(), tmp_path / "none", Terms())
    assert not found.known


def test_a_campaign_minimizes_the_shortest_of_its_worst_findings(tmp_path):
    def at(case, finding):
        return msgspec.structs.replace(finding, case=case)

    concluding = Concluding(Options(("TOSA-1.0+INT",), out=tmp_path), (), None, print)
    group = [at(case, SCALE) for case in ("short", "weak", "fair", "worst")]
    findings = [*group, at("weak", values(9.0)), at("fair", values(60.0)), at("worst", values(100.0))]
    finding, harm = concluding._representative(group, findings)
    assert (finding.case, harm.distance) == ("fair", 60.0)
    assert concluding._representative(group[:1], findings)[0].case == "short"
