"""Issues for upstream's trackers: which entries are one root cause, which harm most, and what a page says. No torch."""

import re

import msgspec
import pytest

from harness.campaign.certify.evidence import Certificate, Moved
from harness.case.case import encode_case
from harness.case.reading import read_case
from harness.corrections import corrections
from harness.reports.bugs.page import Facts
from harness.reports.bugs.verifying import NEEDS_ENGINE, SHOWS, Verified
from harness.reports.upstream.causes import Cause, by_tracker, cause_of, causes
from harness.reports.upstream.page import MOST_LINES, body_lines, evidence_of, index, issue_text, patches, shows_on
from harness.triage.corpus import default_corpus, entries, read_entry
from harness.triage.program_entries import program_entries
from tests.unit.bugs import ETHOS, NUMERIC, RELEASES, case, found

FOUND = default_corpus() / "found"


def entry(name):
    return read_entry(FOUND / name)


def fixes():
    return [item for item in corrections().values() if item.for_release("1.5.1")]


def facts(cause, finding=NUMERIC, outcome=SHOWS, **words):
    return Facts(
        case=read_case(cause.head.folder / "case.json"), finding=finding, script="print(1)", status=cause.head.status,
        verified=Verified(outcome, **words.pop("verified", {})), releases=RELEASES, **words,
    )  # fmt: skip


def test_entries_that_one_edit_removes_are_one_cause():
    chosen = map(entry, ("linear-relu-clamp-dropped", "neg-ignores-scale", "conv-relu-clamp-dropped"))
    assert {(cause.head.name, *(other.name for other in cause.others)) for cause in causes(chosen, fixes())} == {
        ("conv-relu-clamp-dropped", "linear-relu-clamp-dropped"),
        ("neg-ignores-scale",),
    }


def test_of_vela_s_bugs_the_smallest_tosa_file_is_shown():
    """softmax is one node of a module, and fourteen TOSA operators."""
    names = ("vela-batched-softmax", "vela-batched-amax-sigmoid", "vela-reshaped-pool-clamp")
    [cause] = causes(map(entry, names), fixes())
    files = {name: (FOUND / name / "lowered_module_0.tosa").stat().st_size for name in names}
    assert cause.head.name == min(files, key=files.get) != "vela-batched-softmax"


def test_a_workaround_does_not_make_two_bugs_one():
    chosen = [entry("vela-drops-output"), entry("vela-transposed-back-reshape-segfault")]
    assert len(causes(chosen, fixes())) == 2
    assert [item.workaround for item in fixes() if {one.name for one in chosen} <= {*item.entries}] == [True]


def test_an_entry_says_whose_cause_it_has():
    chosen = [entry("vela-u55-reduce-min-squeezed"), entry("vela-u55-amin-beside-view"), entry("vela-drops-output")]
    assert {item.status.cause for item in chosen} == {"vela-u55-reduce-min-of-view", ""}
    told = causes(chosen, fixes())
    assert [{cause.head.name, *(item.name for item in cause.others)} for cause in told if cause.others] == [
        {"vela-u55-reduce-min-squeezed", "vela-u55-amin-beside-view"}
    ]
    programs = program_entries("5.1.0")
    named = cause_of(told, programs)
    assert named["vela-u55-reduce-min-of-view"] == named["vela-u55-amin-beside-view"]
    assert named["vela-u85-blockdep-resize"] == "vela-u85-blockdep-resize"


def test_the_entry_that_names_a_cause_is_there_and_has_it_itself():
    found = {item.name: item for item in (*entries([default_corpus()]), *program_entries("5.1.0"))}
    named = {name: item.status.cause for name, item in found.items() if item.status.cause}
    assert len(named) > 20
    for name, cause in named.items():
        assert cause in found, f"{name}: no entry is called {cause}"
        assert not found[cause].status.cause, f"{name}: {cause} has the cause of another one; name that"
        assert found[cause].status.package == found[name].status.package


def test_the_page_on_ethos_u_has_the_causes_that_entries_name():
    page = (default_corpus().parent / "docs" / "ethos-u.md").read_text()
    table = page.partition("| place in Vela | what goes wrong | entries that one edit ends |")[2].partition("\n\n")[0]
    told = [re.findall("`(vela-[a-z0-9-]+)`", line) for line in table.splitlines() if line.startswith("| `")]
    named = {name: [] for name, *_ in told}
    for item in (*entries([default_corpus()]), *program_entries("5.1.0")):
        if item.status.cause and item.status.package == "ethos-u-vela":
            named.setdefault(item.status.cause, []).append(item.name)
    aside = {"vela-drops-output"}  # of which one of them speaks
    assert {name: sorted({*others} - aside) for name, *others in told} == {
        name: sorted(others) for name, others in named.items()
    }


def test_what_one_correction_does_to_bugs_of_two_packages_does_not_make_them_one():
    """A clamp that ExecuTorch lacks also keeps a pattern away from a bug of Vela's."""
    chosen = [entry("qmin-lost"), entry("vela-u85-chained-int16-tables")]
    assert [item.name for item in fixes() if {"qmin-lost", "vela-u85-chained-int16-tables"} <= set(item.entries)]
    assert [cause.others for cause in causes(chosen, fixes())] == [(), ()]


def test_wrong_values_come_before_crashes_and_harmless_bugs_last():
    names = [
        "qmin-lost",
        "where-of-constant-dtype",
        "cat-repeated-input-dropped",
        "vela-drops-output",
        "neg-ignores-scale",
    ]
    ordered = [cause.head.name for cause in causes(map(entry, names), fixes())]
    assert ordered[0] == "neg-ignores-scale"
    assert ordered[-2:] == ["where-of-constant-dtype", "qmin-lost"]


def test_what_only_an_edited_graph_shows_comes_after_everything_else(tmp_path):
    made = []
    for name, recipe in (("a", "a8w8,edited=conv2d"), ("b", "a8w8")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "case.json").write_bytes(encode_case(case(recipe=recipe)))
        (tmp_path / name / "status.toml").write_text('title = "x"\nexpires = 2027-01-01\n')
        made.append(read_entry(tmp_path / name))
    assert [cause.head.name for cause in causes(made, ())] == ["b", "a"]


def test_every_bug_goes_to_the_tracker_of_its_package():
    groups = by_tracker(causes(entries([FOUND]), fixes()))
    names = {tracker.folder: {cause.head.status.package for cause in group} for tracker, group in groups.items()}
    assert names == {"pytorch-ao": {"torchao"}, "pytorch-executorch": {"executorch"}, "vela": {"ethos-u-vela"}}


def test_a_page_says_what_a_maintainer_asks_before_its_script():
    cause = Cause(entry("conv-relu-clamp-dropped"), (entry("linear-relu-clamp-dropped"),))
    [fix] = [item for item in fixes() if item.name == "fused-activation-keeps-clamp"]
    long = "diff\n" * 40
    made = facts(cause, corrections=[fix], patches={fix.name: long})
    text = issue_text(cause, made, "2026-11-24")
    assert text.startswith(f"# Arm backend: {cause.head.status.title}\n")
    places = [text.index(part) for part in (
        "returns wrong values", "```python", "**Seen**", "**Expected**", "**Where**: `NegPass`",
        "**Versions**: executorch",
        "Tried on 2026-11-24 with executorch 1.5.1", "**The same cause**", "(`linear-relu-clamp-dropped`)", "**A fix**",
        "**Related**: https://github.com/pytorch/executorch/pull/21974", "print(1)",
    )]  # fmt: skip
    assert places == sorted(places)
    assert body_lines(text) <= MOST_LINES
    assert long not in text
    assert patches(made) == {"fused-activation-keeps-clamp.patch": long}


def test_what_edits_executorch_is_no_fix_of_a_bug_of_vela_s():
    [cause] = causes([entry("vela-u85-chained-int16-tables")], fixes())
    [fix] = [item for item in fixes() if item.name == "qmin-clamped"]
    assert not fix.workaround, "it is the fix of qmin-lost"
    made = facts(cause, corrections=[fix], patches={fix.name: "diff\n" * 40})
    text = issue_text(cause, made, "2026-11-27")
    assert "**A workaround in ExecuTorch**" in text
    assert "**A fix**" not in text
    assert patches(made) == {}


def test_a_page_says_what_the_entry_that_names_the_cause_says_and_names_all_others():
    folder = "vela-unit-repeat-clamp-view vela-reshaped-pool-clamp vela-reshaped-sub-clamp vela-pool-reshaped-table"
    chosen = [entry(name) for name in (*folder.split(), "vela-batched-softmax", "vela-reshaped-matmul-clamp")]
    [cause] = causes(chosen, fixes(), program_entries("5.1.0"))
    finding = msgspec.structs.replace(NUMERIC, pass_name="Vela", place=None)
    text = issue_text(cause, facts(cause, finding), "2026-11-27")
    assert "**Suspected cause**: REVERSE of x[2, 1, 1, 2]" in text
    assert "SchedulerPacking::PackOperations" in text
    assert text.index("**Suspected cause**") < text.index("**Versions**")
    assert "**The same cause** (removed by the same change of Vela's source)" in text
    assert all(f"`{item.name}`" in text for item in cause.others)
    assert sum(item.status.title in text for item in cause.others) == 4, "the others by their names alone"
    assert body_lines(text) <= MOST_LINES
    alone = causes(chosen[:1], fixes())
    assert "**Suspected cause**" not in issue_text(alone[0], facts(alone[0], finding), "2026-11-27")


def test_a_short_patch_stands_in_the_page():
    cause = Cause(entry("neg-ignores-scale"))
    [fix] = [item for item in fixes() if item.name == "neg-rescaled"]
    made = facts(cause, corrections=[fix], patches={fix.name: "-old\n+new\n"})
    assert "```diff\n-old\n+new\n```" in issue_text(cause, made, "2026-11-24")
    assert patches(made) == {}


@pytest.mark.parametrize(("name", "says"), [("vela-blockdep-transposed", True), ("vela-batched-padded-slice", False)])
def test_a_page_says_why_there_can_be_no_workaround(name, says):
    cause = Cause(entry(name))
    text = issue_text(cause, facts(cause), "2026-11-27")
    assert (f"**No workaround in ExecuTorch**: {cause.head.status.unavoidable}\n" in text) == says
    assert ("No workaround" in text) == says


def test_a_page_for_vela_has_the_graph_the_command_and_the_wrong_step():
    cause = Cause(entry("vela-batched-padded-slice"))
    tosa = (cause.head.folder / "lowered_module_0.tosa").read_bytes()
    detail = "  0000f0  00000125  SET_ACT\n> 000120  00000005  OP_CONV\n  ; step 0: CONV\n  ;   IFM\n  000124  OP_STOP"
    finding = msgspec.structs.replace(
        found("numeric", "differs from the TOSA reference", pass_name="Vela", target=ETHOS), detail=detail
    )
    made = facts(cause, finding, NEEDS_ENGINE, verified={"files": {"lowered_module_0.tosa": tosa}})
    text = issue_text(cause, made, "2026-11-24")
    assert text.startswith(f"# {cause.head.status.title}\n")
    assert "SLICE(t0, [0, 0, 1, 0], [2, 8, 4, 3])" in text
    assert "vela --accelerator-config=" in text
    assert "000120  00000005  OP_CONV\n; step 0: CONV\n;   IFM\n```" in text
    assert "SET_ACT" not in text
    assert "on no hardware and no FVP" in text
    assert "**Does ExecuTorch emit it?** Yes" in text
    assert body_lines(text) <= MOST_LINES


def test_versions_are_those_of_the_package_whose_bug_it_is():
    status = entry("vela-drops-output").status
    assert shows_on(status, "ethos-u-vela") == "ethos-u-vela 5.2.0, 5.1.0, 5.0.0"
    assert shows_on(entry("neg-ignores-scale").status, "executorch") == (
        "executorch 1.5.1, 1.4.1; not 1.3.1, 1.2.0, 1.1.0"
    )


def test_a_pull_request_that_brought_a_bug_does_not_report_it(tmp_path):
    brought, reported = "https://github.com/o/r/pull/1", "https://github.com/o/r/issues/2"
    (tmp_path / "case.json").write_bytes(encode_case(case()))
    for links, said in (([brought], "not reported, as far as is known"), ([brought, reported], reported)):
        (tmp_path / "status.toml").write_text(f'title = "x"\nexpires = 2027-01-01\nupstream = {links}\n')
        *_, row = index([(Cause(read_entry(tmp_path)), "x.md", "executorch 1.5.1")])
        assert row == f"| [x.md](x.md) | x | executorch 1.5.1 | {said} |"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [("certified", "the bug is gone and nothing that was right is wrong"), ("refused", "a graph is wrong now")],
)
def test_the_evidence_of_a_patch_counts_what_it_changed(verdict, said):
    rows = (
        Moved(cases="graphs", target="TOSA-1.0+INT", outcomes={"same": 150, "right": 40, "alike": 10}),
        Moved(cases="graphs", target=ETHOS, outcomes={"same": 30, "equal": 10}),
        Moved(cases="corpus", target=ETHOS, outcomes={"same": 50}),
    )
    made = Certificate(
        name="x", verdict=verdict, why="a graph is wrong now", line="default", releases=RELEASES, moved=rows
    )
    assert evidence_of(made) == (
        "Compared with and without it (240 drawn graphs, of them 10 another program with the same outputs, "
        f"40 right now; 50 cases of armdiff's corpus, no program changed): {said}."
    )
