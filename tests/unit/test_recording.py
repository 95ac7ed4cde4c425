"""What a replay writes down of a line that an entry says nothing of. No torch."""

import msgspec
import pytest

from harness.campaign.recording import expectation_of, record
from harness.campaign.replaying import Replayed
from harness.triage.corpus import Expectation, read_entry
from tests.unit.bugs import found

SHOWN, ALSO = "v1/numeric/outside-rounding/run/APass/tosa-int/", "v1/qparams/scale-differs/lower/APass/tosa-int/neg"
STATUS = f"""title = "x"
expires = 2027-01-01
[lines.default]
status = "reproduces"
bucket = "{SHOWN}"
also = ["{ALSO}"]
"""


@pytest.fixture
def entry(tmp_path):
    (tmp_path / "status.toml").write_text(STATUS)
    return read_entry(tmp_path)


def row(*buckets, outcome="no expectation"):
    findings = [msgspec.structs.replace(found(bucket.split("/")[1], "x"), bucket=bucket) for bucket in buckets]
    return Replayed(
        entry="x", title="x", outcome=outcome, expected="-", what="", counts=False, case="", findings=tuple(findings)
    )


ELSEWHERE = SHOWN.replace("APass", "BPass")
CRASH = "v1/crash/exception/lower/CPass/tosa-int/ValueError"
OTHER = "v1/buffers/output-count/vela/Vela/tosa-int/"


@pytest.mark.parametrize(
    ("buckets", "expected"),
    [
        ((), Expectation(status="fixed")),
        ((SHOWN,), Expectation(status="reproduces", bucket=SHOWN)),
        ((OTHER, ELSEWHERE, ALSO), Expectation(status="reproduces", bucket=ELSEWHERE, also=(ALSO,), other=(OTHER,))),
        ((CRASH,), Expectation(status="hidden", other=(CRASH,))),
        ((OTHER,), None),
        ((OTHER, CRASH), None),
    ],
)
def test_only_what_cannot_be_mistaken_is_expected(entry, buckets, expected):
    assert expectation_of(entry, row(*buckets)) == expected


def test_a_bug_that_the_default_line_does_not_have_is_told_by_another_line(tmp_path):
    fixed = STATUS.replace("[lines.default]", '[lines.default]\nstatus = "fixed"\n\n[lines.et141]')
    (tmp_path / "status.toml").write_text(fixed)
    entry = read_entry(tmp_path)
    assert expectation_of(entry, row(ELSEWHERE)) == Expectation(status="reproduces", bucket=ELSEWHERE)
    assert expectation_of(entry, row(OTHER)) is None


def test_what_is_expected_already_is_left(entry):
    assert expectation_of(entry, row(outcome="unexpected pass")) is None


def test_a_status_gets_one_more_line_and_keeps_the_rest(entry):
    expected = Expectation(status="reproduces", bucket=ELSEWHERE, also=(ALSO,), other=(OTHER,))
    record(entry, "et141", expected)
    assert (entry.folder / "status.toml").read_text().startswith(STATUS)
    again = read_entry(entry.folder).status
    assert again.lines == {**entry.status.lines, "et141": expected}
