"""One model's findings as a linter tells them: a line a bug and place, at the user's source, with tried workarounds."""

import msgspec
import pytest

from harness.campaign.summary import Tally
from harness.case.call_sites import CallSite
from harness.reports.answer import Answer
from harness.reports.linting import Subject, ends_of_pattern, line_of, problems_of, verdict_of
from harness.triage.known import proved
from harness.workers.protocol import CaseResult
from tests.unit.reporting_runs import TARGETS, chain_case, finding
from tests.unit.test_listing import CORPUS

GRAPH = chain_case("conv2d", "relu", "neg", "relu").graph  # n0, n1, n2, n3
SITES = {
    "n0": CallSite(module="stem", file="m.py", path="m.py", line=4),
    "n1": CallSite(module="Net", file="m.py", path="m.py", line=5),
    "n2": CallSite(module="Net", file="m.py", path="/w/m.py", line=6),
}
SUBJECT = Subject("m.py", GRAPH, SITES)
VALUES = {"distance": 6.0, "unit": "steps", "elements": 3, "of": 4, "output": 0}


def entry(name, operators):
    [found] = [item for item in CORPUS if item.name == name]
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, operators=operators))


def tally_of(*findings, corpus=CORPUS, strict=False):
    tally = Tally(corpus, strict=strict)
    tally.add(CaseResult(case="c.json", findings=findings))
    return tally


def shown(*findings, corpus=CORPUS):
    tally = tally_of(*findings, corpus=corpus)
    return [line_of(problem, SUBJECT) for problem in problems_of(tally, SUBJECT)]


def seen(kind, **changes):
    """A finding that the corpus of ``test_listing`` knows by its kind (``wrong``, ``lost``), or does not."""
    from harness.evidence.inspection.surroundings import seen_place

    return finding(kind=kind, place=seen_place({"kind": kind}), case=f"{kind}.json", **changes)


def structural(**changes):
    return finding("qparams", "clamp lost", blamed="RewriteConvPass", stage="lower", case="c.json", **changes)


def test_a_bug_on_several_targets_and_of_several_oracles_is_one_line():
    alike = [
        proved(item, "bad", ("fix",))
        for target in TARGETS
        for item in (structural(target=target, node="n1"), seen("wrong", target=target, measured=VALUES))
    ]
    [line] = shown(*alike)
    assert line == (
        "m.py:5: error: title of bad, at n1 in Net: 3 of 4 elements of output 0 wrong, by up to 6 steps; "
        "on TOSA-1.0+INT, ethos-u55-128 [known: bad]; '--correction fix' removes it"
    )


def test_a_bug_at_two_places_is_two_lines():
    lines = shown(*(proved(structural(node=node), "bad", ("fix",)) for node in ("n0", "n1")))
    assert [line.split(" error")[0] for line in lines] == ["m.py:4:", "m.py:5:"]


def test_a_workaround_is_named_only_where_it_was_tried():
    by_condition, by_correction = seen("wrong"), proved(seen("other"), "bad", ("fix", "more"))
    assert "removes it" not in shown(by_condition)[0]
    assert "removes it" not in shown(by_condition, by_correction)[0]
    assert "'--correction fix --correction more' removes it" in shown(by_correction)[0]


def test_what_does_no_harm_is_a_warning_unless_a_correction_proved_it():
    assert "m.py: warning: title of slight; on TOSA-1.0+INT [known: slight]" in shown(seen("lost"))
    assert ": error: " in shown(proved(seen("other"), "slight", ("fix",)))[0]


def test_errors_come_before_warnings_and_new_before_known():
    lines = shown(seen("lost"), seen("wrong"), seen("strange"))
    assert [line.split(": ")[1] for line in lines] == ["error", "error", "warning"]
    assert "[new]" in lines[0]
    assert "[known: bad]" in lines[1]


def test_information_is_a_note_and_does_not_count():
    told = finding("delegation", "supported operator on the CPU", information=True, message="topk runs on the CPU")
    tally = tally_of(told)
    [problem] = problems_of(tally, SUBJECT)
    assert line_of(problem, SUBJECT) == "m.py: note: topk runs on the CPU; on TOSA-1.0+INT"
    assert not Answer(tally, SUBJECT, TARGETS[:1]).fails
    assert Answer(tally_of(told, strict=True), SUBJECT, TARGETS[:1]).fails


def test_a_new_finding_says_what_is_wrong_and_since_when():
    [line] = shown(structural(node="n1"))
    assert line.startswith(
        "m.py:5: error: clamp lost: the compiled model gets other scales, zero points or bounds than "
    )
    assert "first after RewriteConvPass, at n1 in Net; on" in line


def test_values_that_name_no_place_join_what_the_same_pass_did_to_the_structure():
    [line] = shown(structural(node="n1"), finding(blamed="RewriteConvPass", measured=VALUES))
    assert line.startswith("m.py:5: error: outside rounding: the compiled model comes out wrong")
    assert len(shown(structural(node="n1"), finding(blamed="OtherPass", measured=VALUES))) == 2


def test_resembling_is_told_as_such_and_not_under_the_title_of_what_it_is_like():
    alike = msgspec.structs.replace(seen("wrong"), place=None)
    [line] = shown(alike)
    assert "[like bad, not proved]" in line
    assert "error: wrong: the compiled model comes out wrong; on" in line


@pytest.mark.parametrize(
    ("operators", "nodes"),
    [(("conv2d", "relu"), ("n1", "n3")), (("neg", "relu"), ("n3",)), (("relu", "neg|abs"), ("n2",)), (("cat",), ())],
)
def test_the_place_is_where_an_entry_s_operators_end(operators, nodes):
    assert ends_of_pattern(GRAPH, operators, 0) == nodes


def test_a_finding_without_a_node_is_at_the_operators_of_its_entry_or_else_at_its_output():
    neg = [entry("bad", ("relu", "neg"))]
    assert shown(proved(seen("x"), "bad", ("fix",)), corpus=neg)[0].startswith(
        "m.py:6: error: title of bad, at n2 in Net"
    )
    two = [entry("bad", ("relu",))]
    assert "at n1 in Net or 1 other place" in shown(proved(seen("x"), "bad", ("fix",)), corpus=two)[0]
    assert (
        "m.py: error: outside rounding: the compiled model comes out wrong, at n3: 3 of 4"
        in shown(finding(measured=VALUES))[0]
    )


def test_a_run_of_the_user_s_own_module_names_lines():
    assert shown(structural(node="/w/m.py:6"))[0].startswith("m.py:6: error: ")


@pytest.mark.parametrize(
    ("findings", "said", "allowed", "fails"),
    [
        ((), "nothing found", "nothing found", (False, False)),
        (
            (seen("wrong"),),
            "1 error, all known ('--allow-known' lets them pass)",
            "1 error, all known and allowed",
            (True, False),
        ),
        ((seen("wrong"), seen("lost")), "1 error and 1 warning, all known", "all known and allowed", (True, False)),
        ((seen("strange"), seen("wrong")), "2 errors", "2 errors", (True, True)),
    ],
)
def test_every_finding_fails_unless_known_bugs_are_allowed(findings, said, allowed, fails):
    tally = tally_of(*findings)
    problems = problems_of(tally, SUBJECT)
    assert said in verdict_of(problems, allow_known=False)
    assert allowed in verdict_of(problems, allow_known=True)
    answers = [Answer(tally, SUBJECT, TARGETS[:1], allow_known=word) for word in (False, True)]
    assert tuple(item.fails for item in answers) == fails
    assert [*answers[0].lines("quiet")][-1] == verdict_of(problems, allow_known=False)


def test_details_are_the_command_that_shows_it_again_and_only_with_v():
    tally = tally_of(seen("wrong"))
    answer = Answer(tally, SUBJECT, TARGETS[:1])
    full, normal, quiet = ("\n".join(answer.lines(detail)) for detail in ("full", "normal", "quiet"))
    assert "replay: armdiff replay wrong.json" in full
    assert "    v1/numeric/wrong/run/-/tosa-int/\n" in full
    assert "replay:" not in normal
    assert normal.startswith("m.py: 1 case on TOSA-1.0+INT\nrelease line ")
    assert len(quiet.splitlines()) == 2


def test_what_did_not_run_is_one_line_a_leg():
    tally = Tally()
    for reason in (
        "no FVP for ethos-u55-128: FVP_A is not on PATH ('armdiff doctor' has the steps)",
        "no FVP for ethos-u85-256: FVP_B is not on PATH ('armdiff doctor' has the steps)",
        "TOSA-1.0+INT has no command stream",
    ):
        tally.add(CaseResult(case="c.json", legs={"ethos-u-fvp": reason}))
    lines = [line for line in Answer(tally, SUBJECT, TARGETS).lines() if "fvp" in line]
    assert lines == [
        "ethos-u-fvp did not run: no FVP for ethos-u55-128, no FVP for ethos-u85-256 ('armdiff doctor' says what to do)"
    ]


def test_silence_about_a_target_that_was_not_judged_is_no_verdict_of_it():
    tally = tally_of()
    assert [*Answer(tally, SUBJECT, TARGETS[:1]).lines("quiet")][-1] == "nothing found"
    assert [*Answer(tally, SUBJECT, TARGETS).lines("quiet")][-1].startswith("only 1 of 2 targets judged: nothing found")
    tally.add(CaseResult(case="d.json", problem="no room on the disk"))
    assert [*Answer(Tally(), SUBJECT, TARGETS).lines("quiet")][-1] == "no target was judged"
    assert [*Answer(tally, SUBJECT, TARGETS).lines("quiet")][-1].startswith("only 1 of 2 targets judged: nothing found")
