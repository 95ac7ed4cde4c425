"""Buckets: stable while a case shrinks, one exception class each; chains; known findings."""

import datetime
from pathlib import Path

import msgspec
import pytest

from harness.campaign.replaying import held_against_status
from harness.case.case import Constant, Graph, Input, Node
from harness.case.chains import contains_in_order, operator_chain
from harness.case.errors import BadInput
from harness.compat import releases
from harness.compat.releases import Basis, basis_of
from harness.evidence.observation import Mismatch
from harness.triage.buckets import bucket_exception, bucket_of
from harness.triage.corpus import Entry, Expectation, Status, entries, known_by, read_entry
from harness.triage.findings import finding_of
from harness.triage.known import KnownBug
from harness.workers.protocol import CaseResult
from tests.unit.observations import CASE

MISMATCH = Mismatch("numeric", "outside rounding", "n3 is off by 7", measured={"distance": 7.0, "output": 0})


def test_a_bucket_holds_no_names_or_numbers():
    other = msgspec.structs.replace(CASE, target="TOSA-1.0+INT+int16")
    assert bucket_of(MISMATCH, CASE.target) == "v1/numeric/outside-rounding/run/-/tosa-int/"
    assert bucket_of(MISMATCH, other.target) == bucket_of(MISMATCH, CASE.target)
    assert bucket_of(MISMATCH, "ethos-u55-128") != bucket_of(MISMATCH, CASE.target)


def test_one_exception_class_a_bucket():
    assert bucket_exception("a") is bucket_exception("a")
    assert bucket_exception("a") is not bucket_exception("b")
    assert issubclass(bucket_exception("a"), AssertionError)


def test_the_chain_follows_only_what_an_output_depends_on():
    graph = Graph(
        inputs=(Input(name="x", shape=(2,)),),
        constants=(Constant(name="k0", shape=(2,), kind="zeros"),),
        nodes=(
            Node(name="n0", operator="relu", inputs=("x",)),
            Node(name="n1", operator="tanh", inputs=("x",)),
            Node(name="n2", operator="split", inputs=("n0",)),
            Node(name="n3", operator="add", inputs=("n2.1", "k0")),
        ),
        outputs=("n1", "n3"),
    )
    assert operator_chain(graph, 0) == ("tanh",)
    assert operator_chain(graph, 1) == ("zeros", "relu", "split", "add")
    assert operator_chain(graph) == ("zeros", "relu", "tanh", "split", "add")


def test_contains_in_order():
    assert contains_in_order(("conv2d", "relu", "cat"), ("conv2d", "cat"))
    assert not contains_in_order(("cat", "conv2d"), ("conv2d", "cat"))


@pytest.fixture
def default_line(monkeypatch):
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: Basis("default"))


def _entry(tmp_path, **expectation):
    lines = {"default": Expectation(**expectation)} if expectation else {}
    return Entry(tmp_path, Status(title="t", expires=datetime.date(2999, 1, 1), operators=("relu",), lines=lines))


FINDING = finding_of(MISMATCH, CASE, "c.json")


@pytest.mark.usefixtures("default_line")
def test_a_finding_resembles_an_entry_by_bucket_message_and_operators(tmp_path):
    def resembled_by(corpus, finding):
        assert known_by(corpus, finding) is None
        return next((entry for entry in corpus if entry.resembles(finding)), None)

    entry = _entry(tmp_path, status="reproduces", bucket=FINDING.bucket, message="off by 7")
    assert resembled_by([entry], FINDING) is entry
    elsewhere = msgspec.structs.replace(FINDING, bucket=bucket_of(MISMATCH, "ethos-u55-128"))
    assert resembled_by([entry], elsewhere) is entry
    assert resembled_by([entry], msgspec.structs.replace(FINDING, bucket="other")) is None
    assert resembled_by([entry], msgspec.structs.replace(FINDING, chain=("tanh",))) is None
    assert resembled_by([entry], msgspec.structs.replace(FINDING, chain=("tanh",), oracle="crash")) is entry
    assert (
        resembled_by([_entry(tmp_path, status="reproduces", bucket=FINDING.bucket, message="off by 8")], FINDING)
        is None
    )
    assert resembled_by([_entry(tmp_path, status="fixed")], FINDING) is None


TODAY = datetime.date(2026, 11, 20)
FOUND = CaseResult(case="c.json", findings=(FINDING,))
NOTHING = CaseResult(case="c.json")


@pytest.mark.usefixtures("default_line")
@pytest.mark.parametrize(
    ("expectation", "result", "outcome", "counts"),
    [
        ({"status": "reproduces", "bucket": FINDING.bucket}, FOUND, "reproduces", False),
        ({"status": "reproduces", "bucket": "x"}, FOUND, "other failure", True),
        ({"status": "reproduces", "bucket": FINDING.bucket, "message": "zzz"}, FOUND, "other failure", True),
        ({"status": "reproduces", "bucket": "x"}, NOTHING, "unexpected pass", True),
        ({"status": "fixed"}, NOTHING, "fixed", False),
        ({"status": "fixed"}, FOUND, "unexpected failure", True),
        ({"status": "fixed", "other": (FINDING.bucket,)}, FOUND, "fixed", False),
        ({"status": "reproduces", "bucket": "x", "other": (FINDING.bucket,)}, FOUND, "unexpected pass", True),
        ({}, NOTHING, "no expectation", False),
        ({}, FOUND, "no expectation", True),
        ({"status": "fixed"}, CaseResult(case="c", problem="bad"), "cannot run", True),
    ],
)
def test_replay_compares_with_what_is_expected(tmp_path, expectation, result, outcome, counts):
    row = held_against_status(_entry(tmp_path, **expectation), result, TODAY)
    assert (row.outcome, row.counts) == (outcome, counts)


@pytest.mark.usefixtures("default_line")
def test_an_expired_entry_counts(tmp_path):
    entry = _entry(tmp_path, status="fixed")
    late = held_against_status(entry, NOTHING, datetime.date(2999, 1, 2))
    assert late.counts
    assert "expired" in late.what


def _write(folder, text):
    folder.mkdir()
    (folder / "status.toml").write_text(text)
    return folder


GOOD = 'title = "t"\nexpires = 2999-01-01\n[lines.seed]\nstatus = "fixed"\n'


def test_an_entry_is_read(tmp_path):
    entry = read_entry(_write(tmp_path / "e", GOOD))
    assert entry.status.lines["seed"].status == "fixed"
    assert [item.name for item in entries([tmp_path])] == ["e"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (GOOD.replace("seed", "et999"), "lines.et999"),
        (GOOD + "colour = 1\n", "colour"),
        ("title = ", "status.toml"),
        (GOOD.replace("fixed", "broken"), "status"),
        (GOOD + 'bucket = "crash"\n', ".bucket"),
    ],
)
def test_a_broken_status_names_the_field(tmp_path, text, part):
    with pytest.raises(BadInput, match=r"status\.toml") as caught:
        read_entry(_write(tmp_path / "e", text))
    assert part in str(caught.value)


def test_an_entry_given_as_the_folder_one_is_in_has_its_name(tmp_path, monkeypatch):
    (folder := _write(tmp_path / "e", GOOD)).joinpath("below").mkdir()
    monkeypatch.chdir(folder)
    assert [item.name for item in entries([Path()])] == ["e"]
    monkeypatch.chdir("below")
    assert [item.name for item in entries([Path("..")])] == ["e"]


def test_no_entry_is_an_error(tmp_path):
    with pytest.raises(BadInput, match="holds no corpus entry"):
        entries([tmp_path])


@pytest.mark.parametrize("line", releases.TABLE, ids=lambda line: line.name)
def test_a_line_is_the_whole_set_of_its_packages(line):
    assert basis_of({**line.releases, "torch": line.releases["torch"] + "+cpu"}) == Basis(line.name)
    for package in releases.PACKAGES:
        other = basis_of({**line.releases, package: "0.0.1"})
        assert package in other.differs
    assert basis_of({**line.releases, "ethos-u-vela": "9"}, "et120") == Basis("et120")


def test_a_set_that_is_no_line_is_held_against_the_nearest():
    newer = {**releases.line_named("default").releases, "ethos-u-vela": "5.3.0"}
    assert basis_of(newer) == Basis("default", ("ethos-u-vela",))
    assert releases.no_line(newer) == (
        "ethos-u-vela 5.3.0 is no part of a known release line; nearest: default; "
        "expectations of bugs that depend on ethos-u-vela do not apply"
    )
    assert releases.name_of(newer) == "default with ethos-u-vela 5.3.0"
    assert releases.no_line(releases.line_named("vela52").releases) == ""
    assert basis_of({**releases.line_named("et141").releases, "torch": "2.14.0"}) == Basis("et141", ("torch",))
    assert releases.name_of({"executorch": "1.6.0"}) == "executorch 1.6.0"


@pytest.mark.parametrize(
    ("package", "bucket", "holds"),
    [
        ("executorch", "v1/qparams/scale/lower/APass/tosa-int/", {"vela", "vela52"}),
        ("executorch", "v1/crash/exception/vela/-/ethos-u55/RuntimeError|x|y", set()),
        ("ethos-u-vela", "v1/stream/overlap/run/Vela/ethos-u55/CONV", {"executorch", "torch"}),
    ],
)
def test_an_expectation_holds_where_no_package_differs_that_it_depends_on(package, bucket, holds):
    expected = Expectation(status="reproduces", bucket=bucket)
    status = Status(title="t", package=package, expires=datetime.date(2999, 1, 1), lines={"default": expected})
    bases = {
        "executorch": Basis("default", ("executorch",)),
        "torch": Basis("default", ("torch",)),
        "vela": Basis("default", ("ethos-u-vela",)),
        "vela52": Basis("vela52"),
    }
    assert status.expected(Basis("default")) is expected
    assert {name for name, basis in bases.items() if status.expected(basis)} == holds
    on_new = Expectation(status="fixed")
    renewed = msgspec.structs.replace(status, lines={"default": expected, "vela52": on_new})
    assert renewed.expected(Basis("vela52")) is on_new
    assert renewed.expected(Basis("default")) is expected


def test_words_of_a_chain_may_have_alternatives():
    assert contains_in_order(("x", "conv2d", "hardtanh"), ("conv1d|conv2d", "relu|hardtanh"))
    assert not contains_in_order(("hardtanh", "conv2d"), ("conv1d|conv2d", "relu|hardtanh"))


def test_captured_operators_count_under_their_short_names():
    captured = ("aten.conv2d.default", "aten.relu_.default")
    assert contains_in_order(captured, ("conv2d", "relu|hardtanh"))
    assert contains_in_order(captured, ("aten.conv2d.default", "relu"))
    assert not contains_in_order(captured, ("relu", "conv2d"))
    assert not contains_in_order(("conv2d",), ("aten.conv2d.default",))


def test_an_entry_resembles_its_bug_by_its_other_buckets_without_a_pass_and_out_of_range(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: Basis("default"))
    bucket = "v1/numeric/outside-rounding/run/RewriteConvPass/tosa-int/"
    also = "v1/qparams/clamp-lost/lower/RewriteConvPass/tosa-int/aten.convolution.default"
    legs = "v1/numeric/differs-from-the-TOSA-reference/run/Vela/tosa-int/CONCAT"
    (tmp_path / "status.toml").write_text(
        'title = "t"\nexpires = 2099-01-01\n[lines.default]\nstatus = "reproduces"\n'
        f'bucket = "{bucket}"\nalso = ["{also}", "{legs}"]\n'
    )
    entry = read_entry(tmp_path)

    def alike(other, oracle="numeric"):
        return entry.resembles(msgspec.structs.replace(FINDING, bucket=other, oracle=oracle))

    assert alike(bucket)
    assert alike(also, "qparams")
    assert alike(bucket.replace("RewriteConvPass", "-"))
    assert alike(legs.replace("Vela", "-"))
    assert not alike(legs.replace("Vela", "RewriteConvPass"))
    assert not alike(also.replace("RewriteConvPass", "-"), "qparams")
    assert alike(bucket.replace("outside-rounding", "outside-rounding,-out-of-range-input-only"))
    assert not alike(bucket.replace("RewriteConvPass", "ExirToTosaPass"))


def test_a_death_without_a_word_is_like_a_known_bug_only_with_its_operators():
    silent = "v1/crash/exception/lower/-/ethos-u55/SIGSEGV|no-native-output|-"
    telling = silent.replace("no-native-output", "Assertion-x-failed")

    def alike(bucket, *chain):
        bug = KnownBug(entry="e", bucket="v1/numeric/x/run/Vela/ethos-u55/", also=(bucket,), operators=("amin", "view"))
        return bug.resembles(msgspec.structs.replace(FINDING, bucket=bucket, oracle="crash", chain=chain))

    assert alike(silent, "amin", "relu", "view")
    assert not alike(silent, "conv2d")
    assert alike(telling, "conv2d")


@pytest.mark.parametrize(
    ("bucket", "oracle", "stage", "alone"),
    [
        ("v1/crash/exception/lower/RewriteConvPass/tosa-int/ValueError|x|a:b", "crash", "lower", True),
        (
            "v1/crash/exception/leg:tosa-reference/-/tosa-int/ValueError|the-shapes-differ|-",
            "crash",
            "leg:tosa-reference",
            False,
        ),
        ("v1/buffers/output-bytes-differ/lower/serializer/tosa-int/", "buffers", "lower", False),
        ("v1/crash/exception/vela/-/tosa-int/RuntimeError|cannot-run-on-NPU|ethosu.vela:x", "crash", "vela", False),
        ("v1/qparams/zero-point-differs/lower/RewriteAvgPool2dPass/tosa-int/x", "qparams", "lower", False),
        ("v1/constants/folded-constant-differs/lower/FuseConstantArgsPass/tosa-int/x", "constants", "lower", False),
    ],
)
def test_what_says_no_place_may_have_several_causes(bucket, oracle, stage, alone):
    bug = KnownBug(entry="e", bucket=bucket, operators=("cat",))
    found = msgspec.structs.replace(FINDING, bucket=bucket, oracle=oracle, stage=stage, chain=("max_pool2d",))
    assert bug.resembles(found) is alone
    assert bug.resembles(msgspec.structs.replace(found, chain=("cat", "max_pool2d")))


def test_an_entry_resembles_a_stream_only_with_its_operators_and_on_its_families(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.triage.corpus.basis", lambda: Basis("default"))
    bucket, also = (f"v1/stream/{kind}/run/Vela/ethos-u55/CONV" for kind in ("duplicate", "overlap"))
    (tmp_path / "status.toml").write_text(
        'title = "t"\nexpires = 2099-01-01\noperators = ["slice", "conv2d"]\nfamilies = ["ethos-u55"]\n'
        f'[lines.default]\nstatus = "reproduces"\nbucket = "{bucket}"\nalso = ["{also}"]\n'
    )
    entry = read_entry(tmp_path)

    def alike(bucket, target="ethos-u55-64", chain=("slice", "relu", "conv2d")):
        return entry.resembles(
            msgspec.structs.replace(FINDING, bucket=bucket, oracle="stream", target=target, chain=chain)
        )

    assert alike(bucket)
    assert alike(also)
    assert not alike(bucket, chain=("conv2d",))
    assert not alike(also, chain=("conv2d",))
    assert not alike(bucket.replace("u55", "u85"), target="ethos-u85-256")
