"""The first forty lines of a report: what is wrong, with which inputs, under which recipe, and where the fix goes."""

import re

import msgspec
import pytest

from harness.compat.releases import installed
from harness.corrections import find_correction
from harness.reports.bugs.page import Facts, report_text
from harness.reports.bugs.sentences import message, recipe_in_words, snippet, what_is_wrong
from harness.reports.bugs.tosa_text import MOST_LINES, tosa_text
from harness.reports.bugs.verifying import NEEDS_ENGINE, SHOWS, Verified
from harness.reports.bugs.writing import _patches
from harness.triage.corpus import default_corpus, read_entry
from tests.unit.bugs import ETHOS, NUMERIC, RELEASES, case, found

SEEN = (
    "output 0 [2, 2], calibration input 0: 3 of 4 elements outside what rounding allows; worst at [0, 1]: "
    "tosa-reference -0.58, quantized-eager -0.98, 86 steps apart (mean over the output 58.75), allowed -0.98 to -0.98 "
    "(one step is 0.0046); codes [-41, 11] where [-127, 5] were expected; first wrong after NegPass"
)
WRONG = msgspec.structs.replace(NUMERIC, message=SEEN)
ON_VELA = msgspec.structs.replace(
    found("numeric", "differs from the TOSA reference", pass_name="Vela", target=ETHOS, distance=250, unit="units"),
    message="output 0: 5 of 8 elements differ, by up to 250: -123 where the reference has 127 at [3, 0]",
)
CRASH = found(
    "crash",
    "exception",
    "lower",
    "APass",
    "KeyError in APass at n1 (aten.x) during lower: no such key",
    type="KeyError",
)
SIGNAL = found("crash", "exception", "vela", None, "SIGSEGV during vela: no native output", ETHOS, type="SIGSEGV")


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (WRONG, "The compiled program of `conv2d -> maximum` for `TOSA-1.0+INT` returns wrong values "
                "(3 of 4 elements, up to 9 steps off); they are right up to `NegPass`, and wrong after it."),
        (found("outputs", "shape", "convert", None, "quantized-eager output 0 has shape [1], expected []"),
         "The quantized graph of `conv2d -> maximum` for `TOSA-1.0+INT` returns outputs of wrong shape."),
        (ON_VELA, "Vela's command stream of `conv2d -> maximum` for `ethos-u55-128` returns wrong values "
                  "(5 of 8 elements, up to 250 units off)."),
        (msgspec.structs.replace(WRONG, pass_name="ExecuTorch runtime"),
         "ExecuTorch's runtime, running the program of `conv2d -> maximum` for `TOSA-1.0+INT` returns wrong values "
         "(3 of 4 elements, up to 9 steps off)."),
        (found("crash", "exception", "leg:executorch", None, "RuntimeRefused during leg:executorch: a::b.out: x",
               type="RuntimeRefused"),
         "The program of `conv2d -> maximum` for `TOSA-1.0+INT` cannot be run by ExecuTorch's runtime: a::b.out: x."),
        (CRASH, "Lowering `conv2d -> maximum` for `TOSA-1.0+INT` fails in `APass`: no such key."),
        (SIGNAL, "Vela does not compile the TOSA graph of `conv2d -> maximum` for `ethos-u55-128`: "
                 "the process ends with SIGSEGV."),
        (found("buffers", "delegate input dropped", "lower", "APass", "lowered_module_0: input 0 is gone; bound by"),
         "`conv2d -> maximum`, lowered for `TOSA-1.0+INT`, gives a program whose buffers do not fit together "
         "after `APass`: delegate input dropped (input 0 is gone)."),
        (found("stream", "duplicate", "run", "Vela", "", ETHOS),
         "`conv2d -> maximum`, compiled by Vela for `ethos-u55-128`, gets a command stream that is wrong: "
         "duplicate."),
    ],
)  # fmt: skip
def test_one_sentence_says_what_is_wrong(finding, said):
    assert what_is_wrong(case(finding.target), finding) == said


def test_expected_values_come_first_as_in_a_scripts_output():
    text = message(WRONG, codes_follow=True)
    assert "worst at [0, 1]: expected -0.98 (quantized-eager), actual -0.58 (tosa-reference), 86 steps apart" in text
    assert "codes" not in text  # the script prints all of them, in the order of the elements
    assert "; codes that occur, sorted: expected [-127, 5], actual [-41, 11]; first wrong" in message(WRONG)
    assert message(ON_VELA).endswith("by up to 250: at [3, 0] expected 127, actual -123.")


def test_the_report_does_not_show_codes_in_another_order_than_the_script():
    printed = "expected codes [5, -127]\nactual   codes [11, -41]\nThe bug shows."
    report = report_text(facts(WRONG, Verified(SHOWS, printed)))
    assert printed in report
    assert "[-127, 5]" not in report
    assert "[-127, 5]" in report_text(facts(WRONG, Verified("ran longer than 3 s")))


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("a8w8", "8-bit activations and weights, a weight scale for each channel"),
        ("a16w8,per-tensor", "16-bit activations and 8-bit weights, one weight scale for each tensor"),
        (
            "a8w8,qmin=-127,io=uint8,observer=minmax,float=n1|n2",
            "8-bit activations and weights, a weight scale for each channel, activation codes from -127 to 127, "
            "uint8 inputs and outputs, a min-max observer, n1 and n2 left float",
        ),
        (
            "a8w8,a16w8=n1|n2",
            "8-bit activations and weights, a weight scale for each channel, n1 and n2 with 16-bit activations and "
            "8-bit weights",
        ),
        ("float", "no quantization"),
    ],
)
def test_a_recipe_is_told_in_words(recipe, words):
    assert recipe_in_words(recipe) == f"{words} (`{recipe}`)"


def test_the_first_snippet_has_the_shapes_of_the_inputs():
    first, *rest = snippet(case()).splitlines()
    assert first == "# input x: float32 [1, 4, 8, 8], calibrated uniform low=-1 high=1"
    assert rest[0] == "class Model(nn.Module):"


def facts(finding, verified, **words):
    status = msgspec.convert({"title": "a title", "expires": "2027-01-01"}, type(read_entry(entry_folder()).status))
    return Facts(
        case=case(finding.target), finding=finding, script="print(1)\n" * 150, verified=verified, status=status,
        releases=RELEASES, **words,
    )  # fmt: skip


def entry_folder():
    return default_corpus() / "found" / "vela-batched-padded-slice"


def test_forty_lines_are_enough_for_a_defect_of_executorch():
    report = report_text(facts(WRONG, Verified(SHOWS, "The bug shows.")))
    top = report.splitlines()[:40]
    places = [
        next(number for number, line in enumerate(top) if part in line)
        for part in ("# a title", "returns wrong values", "# input x: float32 [1, 4, 8, 8]", "8-bit activations",
                     "**Observed**", "**Expected**", "**How to reproduce**")
    ]  # fmt: skip
    assert places == sorted(places)
    assert places[1] == 4
    assert report.index("<summary>repro.py") > report.index("not quantization noise")


def test_a_defect_of_vela_is_on_velas_form_with_the_graph_in_the_file():
    tosa = (entry_folder() / "lowered_module_0.tosa").read_bytes()
    report = report_text(facts(ON_VELA, Verified(NEEDS_ENGINE, files={"lowered_module_0.tosa": tosa})))
    headings = [line for line in report.splitlines() if line.startswith("### ")]
    assert headings[:5] == [
        "### Versions",
        "### Command line",
        "### TOSA file",
        "### What is expected",
        "### What happens",
    ]
    top = "\n".join(report.splitlines()[:40])
    assert top.split("\n")[2].startswith("Vela's command stream of")
    assert "t1: int8 [2, 8, 4, 3] = SLICE(t0, [0, 0, 1, 0], [2, 8, 4, 3])" in top
    assert "🐛" not in report
    crash = report_text(facts(SIGNAL, Verified(SHOWS, "The bug shows.")))
    assert "### Command line" in crash  # whoever refuses the graph wants the graph
    assert "`repro.py` writes it." in crash


def test_a_graph_is_told_without_its_constants_and_not_at_any_length():
    text = tosa_text((entry_folder() / "lowered_module_0.tosa").read_bytes())
    assert text.splitlines()[0] == "in0: int8 [2, 3, 8, 6]"
    assert "CONST" not in text
    assert tosa_text(b"no graph") == ""
    longest = max(default_corpus().glob("*/*/*.tosa"), key=lambda file: file.stat().st_size)
    assert len(tosa_text(longest.read_bytes()).splitlines()) <= MOST_LINES


@pytest.mark.skipif(installed().get("executorch") != "1.5.1", reason="line numbers are of executorch 1.5.1")
def test_a_correction_is_a_diff_with_files_and_line_numbers_that_hold():
    fix = find_correction("neg-rescaled")
    (diff,) = _patches([fix], installed()).values()
    report = report_text(facts(WRONG, Verified(SHOWS), corrections=[fix], patches={fix.name: diff}))
    assert diff.rstrip() in report
    assert "+++ b/backends/arm/_passes/insert_rescales_pass.py" in diff
    from harness.compat.sources import text_of

    lines = text_of("executorch.backends.arm._passes.insert_rescales_pass").splitlines()
    hunks = re.findall(r"^@@ -(\d+),\d+ .*@@\n(.*)$", diff, re.M)
    assert len(hunks) == 4
    assert all(lines[int(number) - 1] == first[1:] for number, first in hunks)


def test_another_release_than_the_installed_one_gets_no_line_numbers():
    fix = find_correction("neg-rescaled")
    assert _patches([fix], {"executorch": "0.0.1"}) == {}
    report = report_text(facts(WRONG, Verified(SHOWS), corrections=[fix]))
    assert "@@" not in report
    assert "It changes `executorch.backends.arm._passes.insert_rescales_pass.InsertRescaleInt32Pass" in report
