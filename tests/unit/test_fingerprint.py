"""Fingerprints of smallest programs, and what they prove: pure data."""

import datetime
from types import SimpleNamespace

import msgspec
import pytest

from harness.campaign.recording import add_fingerprint
from harness.reports.bugs.smallest import with_smallest
from harness.tosa.causes import Cause
from harness.tosa.fingerprint import generalisations, worded
from harness.tosa.program import Operator, Program, Tensor
from harness.tosa.resizing import resized
from harness.triage.corpus import read_entry
from harness.triage.findings import Finding
from harness.triage.known import KnownBug, classified, shown_kind

PADDED = Program(
    (
        Tensor("x0", (1, 2, 17), "INT8"),
        Tensor("v0", (1, 2, 1), "INT8"),
        Tensor("c0", (6,), "SHAPE", (0, 0, 1, 0, 0, 0)),
        Tensor("c1", (1,), "INT8", (0,)),
        Tensor("v1", (1, 3, 1), "INT8"),
    ),
    (
        Operator("REDUCE_MAX", ("x0",), ("v0",), {"Axis": 2, "NanMode": 1}),
        Operator("PAD", ("v0", "c0", "c1"), ("v1",)),
    ),
    ("x0",),
    ("v1",),
)
BUCKET = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/ethos-u55/PAD"


def finding(bucket: str = BUCKET, **words) -> Finding:
    return Finding(
        bucket=bucket,
        oracle=bucket.split("/")[1],
        kind=bucket.split("/")[2].replace("-", " "),
        target="ethos-u55-128",
        stage="run",
        message="",
        **{"case": "a", **words},
    )


def test_generalisations_are_programs_of_the_next_multiple_and_of_one_more():
    found = generalisations(PADDED, finding())
    sizes = {key: program.by_name["x0"].shape for key, program in found.items()}
    assert sizes == {
        (("x0", 1), "multiple"): (1, 16, 17),
        (("x0", 1), "more"): (1, 3, 17),
        (("x0", 2), "multiple"): (1, 2, 32),
        (("x0", 2), "more"): (1, 2, 18),
    }
    assert all(resized(program) == program for program in found.values())


@pytest.mark.parametrize(
    ("multiple", "more", "word"), [(True, True, ">16"), (False, True, "n%16"), (False, False, "=17")]
)
def test_a_size_is_told_as_what_it_has_to_be(multiple: bool, more: bool, word: str):
    shown = {(("x0", 1), "multiple"): True, (("x0", 1), "more"): True}
    shown |= {(("x0", 2), "multiple"): multiple, (("x0", 2), "more"): more}
    assert worded(PADDED, finding(), shown) == (
        f"values: x0 int8 [n, {word}]; v0 = REDUCE_MAX(x0) along n; v1 = PAD(v0) pad before"
    )


def test_what_a_stream_reads_unwritten_and_wrong_values_are_one_kind_and_deaths_are_their_own():
    assert shown_kind(finding()) == shown_kind(finding("v1/stream/unwritten-read/run/Vela/ethos-u55/POOL")) == "values"
    assert shown_kind(finding("v1/stream/hazard/run/Vela/ethos-u55/POOL")) == "stream/hazard"
    died = finding("v1/crash/exception/vela/-/ethos-u55/SIGSEGV|no-native-output|-", measured={"type": "SIGSEGV"})
    assert shown_kind(died) == "crash SIGSEGV"


def test_the_fingerprint_of_an_entry_proves_a_finding_on_its_families_alone():
    bug = KnownBug(entry="an-entry", bucket=BUCKET, fingerprints=("values: this",), families=("ethos-u55",))
    found = classified(finding(fingerprint="values: this"), [bug])
    assert (found.state, found.entry) == ("known", "an-entry")
    assert found.proof == "its smallest program is that of an-entry (values: this)"
    assert classified(finding(fingerprint="values: that"), [bug]).state != "known"
    assert classified(finding(), [bug]).state != "known"
    elsewhere = msgspec.structs.replace(finding(fingerprint="values: this"), target="ethos-u85-256")
    assert classified(elsewhere, [bug]).state != "known"


STATUS = f"""title = "A bug"
package = "ethos-u-vela"
expires = {datetime.date(2100, 1, 1)}
note = "Its [note]."

[[conditions]]
path = ["PAD"]

[lines.default]
status = "reproduces"
bucket = "{BUCKET}"
"""


def test_fingerprints_are_added_to_an_entry_and_nothing_else_changes(tmp_path):
    file = tmp_path / "status.toml"
    file.write_text(STATUS)
    for text in ('values: x0 int8 ["n"]', "values: that", "values: that"):
        add_fingerprint(read_entry(tmp_path), text)
    status = read_entry(tmp_path).status
    assert status.fingerprints == ('values: x0 int8 ["n"]', "values: that")
    kept = SimpleNamespace(**{name: getattr(status, name) for name in ("title", "note", "conditions", "lines")})
    file.write_text(STATUS)
    before = read_entry(tmp_path).status
    assert all(getattr(before, name) == value for name, value in vars(kept).items())


@pytest.mark.parametrize("report", ["# A bug\n\n### TOSA file\n\nbelow\n", "# A bug\n\n### Versions\n\nbelow\n"])
def test_a_report_has_the_smallest_program_once(report: str):
    shown = msgspec.structs.replace(finding(), message="all is wrong")
    cause = Cause("values: this", PADDED, shown, ("ethos-u55-128",), {}, 0, 0.0, True)
    text = with_smallest(with_smallest(report, cause), cause)
    assert text.count("### Smallest TOSA file") == text.count("`smallest.tosa`") == 1
    assert "v1: INT8 [1, 3, 1] = PAD(v0, [0, 0, 1, 0, 0, 0], 0)" in text
    assert "all is wrong. It shows on ethos-u55-128" in text
    assert text.count("below") == 1
    wanted = ("# A bug", "### Smallest", "### TOSA file") if "### TOSA" in report else ("### Versions", "### Smallest")
    assert [text.find(word) for word in wanted] == sorted(text.find(word) for word in wanted)


def test_no_size_is_tried_where_chance_decides_whether_it_shows():
    differs = finding("v1/deterministic/payload-differs/vela/Vela/*/PAD")
    assert generalisations(PADDED, differs) == {}
    assert worded(PADDED, differs, {}) == (
        "deterministic/payload-differs: x0 int8 [n, n]; v0 = REDUCE_MAX(x0) along n; v1 = PAD(v0) pad before"
    )


@pytest.mark.parametrize(
    ("scale", "words"), [((2, 1, 4, 2), "RESIZE(x0)"), ((2, 1, 4, 1), "RESIZE(x0) by unlike factors")]
)
def test_a_fingerprint_says_whether_rows_and_columns_grow_alike(scale: tuple[int, ...], words: str):
    shapes = [Tensor(f"c{number}", (len(data),), "SHAPE", data) for number, data in enumerate((scale, (0, 0), (0, 0)))]
    program = Program(
        (Tensor("x0", (1, 1, 1, 1), "INT8"), *shapes, Tensor("v0", (1, 1, 1, 1), "INT8")),
        (Operator("RESIZE", ("x0", "c0", "c1", "c2"), ("v0",), {"Mode": 1}),),
        ("x0",),
        ("v0",),
    )
    assert worded(program, finding(), {}) == f"values: x0 int8 [1]; v0 = {words}"


def test_a_program_whose_output_is_its_input_has_a_fingerprint():
    program = Program((Tensor("x0", (1, 3), "INT8"),), (), ("x0",), ("x0",))
    refused = finding("v1/crash/exception/vela/-/ethos-u85/RuntimeError|x")
    assert worded(program, refused, {}).endswith(": x0 int8 [n]; out x0")
