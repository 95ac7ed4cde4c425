"""Certificates as data: what a comparison means, the verdict, the page, the store, and cutting a case down."""

import msgspec
import pytest

from harness.campaign.certify.deciding import (
    met_in_vela,
    outcome_of,
    refuses,
    remaining,
    tally,
    too_often_in_vela,
    verdict_on,
)
from harness.campaign.certify.evidence import Certificate, Counterexample, Function, Moved, Shown, Whole
from harness.campaign.certify.page import in_brief, markdown
from harness.campaign.certify.reduced_case import cuts, smallest
from harness.campaign.certify.store import Store, key_of
from harness.campaign.replaying import held_against_status
from harness.case.case import encode_case
from harness.case.reading import decode_case
from harness.compat.releases import Basis
from harness.corrections import Correction, find_correction
from harness.triage.corpus import Entry, Expectation, Status, default_corpus, entries, with_corrections
from harness.triage.findings import Finding
from harness.triage.known import proved
from harness.workers.protocol import CaseResult, Comparison
from tests.integration.conftest import sigmoid_case

NEG = "neg-rescaled"


def finding(bucket="v1/crash/exception/lower/P/tosa-int/x", **words):
    _, oracle, kind, stage, *_ = bucket.split("/")
    return Finding(
        bucket=bucket, oracle=oracle, kind=kind, target="TOSA-1.0+INT", stage=stage, message="m", case="c", **words
    )


def entry(tmp_path, name="bug", bucket="v1/crash/exception/lower/P/tosa-int/x", **words):
    expected = Expectation(status="reproduces", bucket=bucket, **words)
    status = Status(title="t", expires="2999-01-01", lines={"default": expected})
    return Entry(tmp_path / name, msgspec.convert(msgspec.to_builtins(status), Status))


@pytest.fixture
def default_line(monkeypatch):
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: Basis("default"))


A, B = "v1/crash/exception/lower/P/tosa-int/a", "v1/buffers/output-count/vela/Vela/ethos-u55/"
C = "v1/qparams/clamp-lost/lower/P/tosa-int/"


@pytest.mark.parametrize(
    ("stock", "corrected", "apart", "outcome"),
    [
        ((), (), "", "equal"),
        ((), (), "output 0", "rounded"),
        ((), (A,), "", "worse"),
        ((A,), (), "output 0", "right"),
        ((A, B), (A,), "", "better"),
        ((A,), (A,), "output 0", "alike"),
        ((A,), (C,), "", "worse"),
        ((C,), (B,), "", "worse"),
    ],
)
def test_what_a_comparison_means(stock, corrected, apart, outcome):
    row = Comparison(
        variant=(NEG,),
        what="other TOSA",
        stock=tuple(map(finding, stock)),
        corrected=tuple(map(finding, corrected)),
        apart=apart,
    )
    assert outcome_of(row, ()) == outcome
    assert outcome_of(Comparison(variant=(NEG,), same=True), ()) == "same"


def test_a_known_bug_behind_the_corrected_one_is_uncovered_not_worse(tmp_path, default_line):
    corpus = [entry(tmp_path, bucket=B)]
    row = Comparison(variant=(NEG,), what="w", stock=(finding(A),), corrected=(finding(B),))
    assert outcome_of(row, corpus) == "uncovered"
    from_right = Comparison(variant=(NEG,), what="w", corrected=(finding(B),))
    assert outcome_of(from_right, corpus) == "worse", "where stock was right nothing may show"


@pytest.mark.parametrize(
    ("stage", "shown", "outcome"),
    [("prepare", "Vela", "uncovered"), ("prepare", None, "worse"), ("vela", "Vela", "worse"), ("run", "Vela", "worse")],
)
def test_only_behind_a_crash_before_vela_may_vela_be_wrong(stage, shown, outcome):
    crash = msgspec.structs.replace(finding(A), oracle="crash", stage=stage)
    row = Comparison(
        variant=(NEG,), what="w", stock=(crash,), corrected=(msgspec.structs.replace(finding(C), pass_name=shown),)
    )
    assert outcome_of(row, ()) == outcome


@pytest.mark.parametrize(("stage", "outcome"), [("emit", "uncovered"), ("lower", "uncovered"), ("run", "worse")])
def test_only_behind_a_crash_before_the_program_runs_may_a_kernel_refuse_it(stage, outcome):
    crash = msgspec.structs.replace(finding(A), oracle="crash", stage=stage)
    refusal = msgspec.structs.replace(finding(C), oracle="crash", stage="leg:executorch")
    assert outcome_of(Comparison(variant=(NEG,), what="w", stock=(crash,), corrected=(refusal,)), ()) == outcome


def test_velas_wrong_output_is_the_same_finding_at_another_step():
    """A corrected program has other steps; a bug of Vela's that stock shows in the same output is not new."""

    def wrong(step, output):
        bucket = f"v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u85/{step}"
        return finding(bucket, pass_name="Vela", measured={"output": output})

    stock, moved, other = wrong("TABLE", 0), wrong("REDUCE_MIN", 0), wrong("TABLE", 1)
    assert outcome_of(Comparison(variant=(NEG,), what="w", stock=(stock,), corrected=(moved,)), ()) == "alike"
    assert outcome_of(Comparison(variant=(NEG,), what="w", stock=(stock,), corrected=(moved, other)), ()) == "worse"


def test_wrong_qparams_are_the_same_finding_behind_another_pass():
    """A correction that adds a CLAMP behind a NEGATE leaves it the scale that is wrong there already."""

    def wrong(name, operator):
        return finding(f"v1/qparams/scale-differs/lower/{name}/tosa-int/{operator}", pass_name=name)

    stock, moved, other = wrong("P", "aten.neg.default"), wrong("Q", "aten.neg.default"), wrong("Q", "aten.add.Tensor")
    assert outcome_of(Comparison(variant=(NEG,), what="w", stock=(stock,), corrected=(moved,)), ()) == "alike"
    assert outcome_of(Comparison(variant=(NEG,), what="w", stock=(stock,), corrected=(moved, other)), ()) == "worse"


def test_a_bug_of_velas_that_a_correction_leads_to_is_named(tmp_path, default_line):
    hazard = msgspec.structs.replace(finding(B), pass_name="Vela")
    alone = Comparison(variant=(NEG,), what="w", corrected=(hazard,))
    assert met_in_vela(alone, [entry(tmp_path, "vela-bug", B)]).startswith("Vela's bug vela-bug, which it resembles")
    assert met_in_vela(alone, ()) == "a bug of Vela that no corpus entry describes"
    assert outcome_of(Comparison(variant=(NEG,), what="w", corrected=(hazard,)), ()) == "worse"
    assert outcome_of(Comparison(variant=(NEG,), what="w", corrected=(hazard,)), (), alone=False) == "vela"
    own = Comparison(variant=(NEG,), what="w", corrected=(hazard, finding(A)))
    assert outcome_of(own, (), alone=False) == "worse"
    assert met_in_vela(own, ()) == "", "the correction is to blame for the other one"
    stock = Comparison(variant=(NEG,), what="w", stock=(hazard,), corrected=(hazard,))
    assert met_in_vela(stock, ()) == ""


def test_a_proved_bug_of_velas_is_told_and_refuses_only_if_it_is_met_often(tmp_path, default_line):
    hazard = msgspec.structs.replace(finding(B), pass_name="Vela")
    known = proved(hazard, "vela-bug", ("fix",))
    corpus = [entry(tmp_path, "vela-bug", B)]

    def met(*corrected):
        return outcome_of(Comparison(variant=(NEG,), what="w", corrected=corrected), corpus)

    assert (met(known), met(hazard)) == ("vela", "worse"), "what only looks like a bug of Vela's is not proved"
    assert met(known, finding(A)) == "worse", "the correction is to blame for the other one"
    assert not too_often_in_vela({"same": 10, "equal": 19, "vela": 1})
    assert too_often_in_vela({"same": 100, "equal": 18, "vela": 1})
    page = Certificate(name=NEG, verdict="certified", why="w", line="default", releases={}, vela={"Vela's bug a": 2})
    told = "Vela compiles it wrong where it compiles stock's right, in 2 graphs: Vela's bug a."
    assert told in in_brief(msgspec.structs.replace(page, moved=(Moved(cases="graphs", target="t", outcomes={}),)))


def test_only_workarounds_may_round_otherwise_and_what_quantizes_otherwise():
    right, workaround = (Correction("c", (), "c.", "c.", (), ((),), workaround=flag) for flag in (False, True))
    lowered, quantized = (Comparison(variant=("c",), what=what) for what in ("d: other TOSA", "quantized graph: add"))
    assert refuses("rounded", right, lowered)
    assert not refuses("rounded", workaround, lowered)
    assert not refuses("rounded", right, quantized), "quantized eager moves along"
    assert not refuses("rounded", right, lowered, quantized=False), "floats have no last code that must stay"
    assert refuses("worse", right, lowered, quantized=False)
    assert not refuses("rounded", None, lowered)
    assert refuses("worse", workaround, quantized)
    assert not any(refuses(name, right, lowered) for name in ("same", "equal", "right", "better", "alike", "uncovered"))


def test_the_verdict():
    assert verdict_on(False, {})[0] == "not-needed"
    assert verdict_on(True, {})[0] == "certified"
    assert verdict_on(True, {"corrected": "6 steps"}) == ("refused", "corrected: 6 steps")
    assert tally(["same", "worse", "same"]) == {"same": 2, "worse": 1}


def test_other_known_bugs_may_remain_on_a_corrected_case(tmp_path, default_line):
    other = entry(tmp_path, "other", bucket=B)
    mine = entry(tmp_path, "mine", bucket=A, other=(B,))
    correction = Correction("c", ("mine",), "c.", "c.", (), ((),))
    corpus = with_corrections([mine, other], (correction,))
    [renewed] = [item for item in corpus if item.name == "mine"]
    assert renewed.expected.status == "fixed"
    assert remaining(renewed, [finding(B)], corpus) == []
    assert remaining(renewed, [finding(A)], corpus) == [finding(A)], "its own bug may not"
    assert remaining(renewed, [finding(C)], corpus) == [finding(C)], "nor what nobody knows"
    assert remaining(renewed, [finding(C)], corpus, before=[finding(C)]) == [], "unless stock shows that as well"
    both = with_corrections([mine, other], (correction, Correction("d", ("other",), "c.", "c.", (), ((),))))
    [renewed] = [item for item in both if item.name == "mine"]
    assert renewed.expected.other == (), "nor one that is corrected, too"


def test_replay_expects_a_corrected_bug_to_be_gone(tmp_path, default_line):
    import datetime

    mine = entry(tmp_path, "mine", bucket=A)
    [renewed] = with_corrections([mine], (Correction("c", ("mine",), "c.", "c.", (), ((),)),))
    today = datetime.date(2026, 1, 1)
    assert not held_against_status(renewed, CaseResult(case="c"), today).counts
    assert (
        held_against_status(renewed, CaseResult(case="c", findings=(finding(A),)), today).outcome
        == "unexpected failure"
    )
    assert held_against_status(mine, CaseResult(case="c", findings=(finding(A),)), today).outcome == "reproduces"


def test_an_unexpected_pass_says_what_did_not_show_twice(tmp_path, default_line):
    import datetime

    mine, today = entry(tmp_path, "mine", bucket=A), datetime.date(2026, 1, 1)
    row = held_against_status(mine, CaseResult(case="c", unrepeated=(finding(A),)), today)
    assert row.outcome == "unexpected pass"
    assert row.what.endswith(f"did not show a second time: {finding(A).message}")
    assert held_against_status(mine, CaseResult(case="c"), today).what == "nothing found"


def test_an_entry_may_be_hidden_behind_another_bug(tmp_path, default_line):
    import datetime

    expected = Expectation(status="hidden", other=(B,))
    mine = Entry(tmp_path, Status(title="t", expires=datetime.date(2999, 1, 1), lines={"default": expected}))
    today = datetime.date(2026, 1, 1)
    row = held_against_status(mine, CaseResult(case="c", findings=(finding(B),)), today)
    assert (row.outcome, row.counts, row.findings) == ("hidden", False, (finding(B),))
    assert held_against_status(mine, CaseResult(case="c"), today).outcome == "unexpected pass"
    assert (
        held_against_status(mine, CaseResult(case="c", findings=(finding(A),)), today).outcome == "unexpected failure"
    )
    assert not mine.resembles(finding(B))


def test_what_was_hidden_is_expected_once_nothing_stands_before_it(tmp_path, default_line):
    before = entry(tmp_path, "before", B)
    hidden = entry(tmp_path, "hidden", A)
    expected = Expectation(status="hidden", bucket=A, other=(B,))
    status = msgspec.structs.replace(hidden.status, lines={"default": expected})
    hidden = msgspec.structs.replace(hidden, status=status)
    assert not hidden.resembles(finding(A))
    kept = with_corrections([before, hidden], (Correction("c", ("else",), "c.", "c.", (), ((),)),))
    assert not kept[1].resembles(finding(A))
    renewed = with_corrections([before, hidden], (Correction("c", ("before",), "c.", "c.", (), ((),)),))
    assert renewed[1].resembles(finding(A))
    [alone] = with_corrections([hidden], (Correction("c", ("before",), "c.", "c.", (), ((),)),), [before])
    assert alone.resembles(finding(A))


def test_comparisons_are_kept_by_what_they_depend_on(tmp_path, monkeypatch):
    file = tmp_path / "deep" / "comparisons.jsonl"
    row = Comparison(variant=(NEG,), what="other TOSA", stock=(finding(A),))
    Store(file).put("0123", "TOSA-1.0+INT", row)
    with file.open("ab") as opened:
        opened.write(b'{"key": "cut o')
    again = Store(file)
    assert again.get("0123", "TOSA-1.0+INT", (NEG,)) == row
    assert again.get("0123", "ethos-u55-128", (NEG,)) is None
    assert again.get("4567", "TOSA-1.0+INT", (NEG,)) is None
    assert again.get("0123", "TOSA-1.0+INT", ()) is None
    monkeypatch.setattr(Correction, "digest", lambda self, executorch: "another text")
    assert Store(file).get("0123", "TOSA-1.0+INT", (NEG,)) is None


def test_a_comparison_depends_on_what_its_correction_needs(monkeypatch):
    monkeypatch.setattr("harness.corrections.installed", lambda: {"executorch": "1.5.1"})
    before = key_of("0123", "TOSA-1.0+INT", ("vela-reduction-of-slice-rejected",))
    needed = find_correction("delegate-output-dtype")
    monkeypatch.setattr(Correction, "digest", lambda self, _: "other" if self == needed else "same")
    one = key_of("0123", "TOSA-1.0+INT", ("vela-reduction-of-slice-rejected",))
    monkeypatch.setattr(Correction, "digest", lambda self, _: "same")
    assert len({before, one, key_of("0123", "TOSA-1.0+INT", ("vela-reduction-of-slice-rejected",))}) == 3


def test_the_page_says_verdict_bug_and_counterexample():
    certificate = Certificate(
        name="mended",
        verdict="refused",
        why="nothing else moved: 6 steps apart",
        line="default",
        releases={"executorch": "1.5.1"},
        cause="Cause.",
        change="Change.",
        needs=("other",),
        functions=(Function(module="m", place="P.call", installed="aa", corrected="bb"),),
        shown=(Shown(entry="bug", target="TOSA-1.0+INT", bug=True, stock={A: "it raises"}, legs=("eager",)),),
        moved=(
            Moved(cases="graphs", target="TOSA-1.0+INT", outcomes={"same": 7, "worse": 1}, reached=3),
            Moved(cases="kin", target="ethos-u55-128", outcomes={"same": 10, "right": 5}, reached=9),
        ),
        whole=Whole(says="every one", points=1234, wrong=2, corrected_wrong=1, lost=1),
        counterexample=Counterexample(
            case="c.json",
            target="TOSA-1.0+INT",
            outcome="worse",
            what="6 steps apart",
            chain=("cat", "neg"),
            corrected={B: "wrong"},
        ),
        command="armdiff certify mended",
    )
    page = markdown(certificate)
    assert page.startswith("# `mended`: refused\n\nNothing else moved: 6 steps apart.\n")
    assert "| bug | TOSA-1.0+INT | crash: exception | passes | passes | eager |" in page
    assert "| graphs | TOSA-1.0+INT | 3 | 7 | 0 | 1 |" in page
    assert "12 of 23 graphs came to the edited lines; 6 of 23 became another program, on 5 of which every" in page
    alone = markdown(msgspec.structs.replace(certificate, needs=()))
    assert "12 of 23 graphs came to the edited lines; 6 of them became another program, on 5 of which every" in alone
    assert "On the other 6 the same was left both ways" in alone
    assert (
        "All 1,234 points of every one. The installed function is wrong at 2 of them, the corrected one at 1; 1 "
        in page
    )
    assert "`cat -> neg` on TOSA-1.0+INT, case `c.json`: wrong where stock was not." in page
    assert "| `m:P.call` | aa | bb |" in page
    assert "* Applied along with it, for the bugs that it leads to: other\n" in page
    assert "`armdiff certify mended`" in page


def test_a_certificate_from_before_graphs_were_counted_says_so():
    old = Certificate(
        name="c",
        verdict="certified",
        why="w",
        line="default",
        releases={},
        moved=(Moved(cases="graphs", target="TOSA-1.0+INT", outcomes={"same": 7}),),
    )
    assert "How many graphs came to the edited lines was not counted when this was made." in markdown(old)
    assert "came to" not in in_brief(old)


def test_drawn_graphs_that_come_to_the_edited_lines_are_counted_without_kin():
    rows = (
        Moved(cases="graphs", target="TOSA-1.0+INT", outcomes={"same": 30, "right": 170}, reached=192),
        Moved(cases="corpus", target="TOSA-1.0+INT", outcomes={"same": 9}, reached=4),
    )
    found = Certificate(name="c", verdict="certified", why="w", line="default", releases={}, moved=rows)
    for text in (in_brief(found), markdown(found)):
        assert "192 of 200 graphs came to the edited lines; 170 of them became another program, on 170" in text


def test_a_case_is_cut_down_to_what_shows():
    case = sigmoid_case()
    found = smallest(case, lambda item: any(node.operator == "sigmoid" for node in item.graph.nodes))
    assert [node.operator for node in found.graph.nodes] == ["sigmoid"]
    assert set(found.calibration) == {item.name for item in found.graph.inputs}
    assert decode_case(encode_case(found)) == found
    assert smallest(case, lambda item: False) == case


def test_a_cut_forgets_the_float_nodes_that_are_gone():
    case = sigmoid_case(recipe="a8w8,float=n0")
    found = smallest(case, lambda item: any(node.operator == "sigmoid" for node in item.graph.nodes))
    assert [node.operator for node in found.graph.nodes] == ["sigmoid"]
    assert found.recipe == "a8w8"


def test_every_cut_of_the_corpus_is_a_valid_smaller_case():
    from harness.case.reading import read_case

    made = 0
    for item in entries([default_corpus()]):
        case = read_case(item.folder)
        for cut in cuts(case):
            made += 1
            assert decode_case(encode_case(cut)) == cut
            assert (len(cut.graph.nodes), len(cut.graph.outputs)) < (len(case.graph.nodes), len(case.graph.outputs) + 1)
    assert made > 50
