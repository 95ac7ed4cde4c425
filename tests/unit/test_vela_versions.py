"""What changes from one Vela to the next, and where other Velas are kept."""

import subprocess
import sys

import pytest

from harness.case.errors import BadInput, CannotRun
from harness.compat import velas
from harness.compat.releases import installed
from harness.tosa.engine import Result
from harness.tosa.program import Program
from harness.tosa.tally import VelaTally
from harness.tosa.versions import EVERYWHERE, Versions, change
from harness.triage.findings import Finding


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("yes", "yes", "yes"), EVERYWHERE),
        (("yes", "yes", "no"), "fixed in 5.2.0"),
        (("no", "yes", "yes"), "new in 5.1.0"),
        (("no", "no", "yes"), "new in 5.2.0"),
        (("yes", "no", "yes"), "fixed in 5.1.0, came back in 5.2.0"),
        (("no", "yes", "no"), "new in 5.1.0, fixed in 5.2.0"),
        (("yes", "refused", "no"), "fixed in 5.2.0"),
        (("refused", "yes", "yes"), "in every version that tells (not 5.0.0)"),
    ],
)
def test_a_finding_s_change_is_told_from_the_versions_that_tell(states: tuple[str, ...], said: str):
    assert change(dict(zip(("5.0.0", "5.1.0", "5.2.0"), states, strict=True))) == said


def finding(kind: str) -> Finding:
    return Finding(
        bucket=f"v1/stream/{kind}/run/Vela/ethos-u55/POOL",
        oracle="stream",
        kind=kind,
        target="ethos-u55-128",
        stage="run",
        message="m",
        case="",
    )


def result(place: int, *kinds: str, outcome: str = "") -> Result:
    found = tuple(map(finding, kinds))
    said = outcome or ("finding" if found else "clean")
    return Result(0, place, "ethos-u55-128", 1, said, findings=found, program=Program((), (), (), ()))


def test_a_version_that_refuses_or_dies_says_nothing_of_wrong_values():
    died = Finding(
        bucket="v1/crash/exception/vela/-/ethos-u55/RuntimeError|refused|-",
        oracle="crash",
        kind="exception",
        target="ethos-u55-128",
        stage="vela",
        message="m",
        case="",
    )
    stopped = Result(0, 0, "ethos-u55-128", 1, "finding", findings=(died,))
    assert (stopped.without("stream"), stopped.without("crash")) == ("refused", "no")
    assert result(0, "overlap").without("numeric") == "no"
    assert result(0, outcome="unjudged").without("numeric") == "unjudged"


def test_findings_of_versions_are_joined_by_program_and_kind():
    versions = Versions({"5.1.0": VelaTally(), "5.2.0": VelaTally()})
    versions.add("5.1.0", result(0, "overlap", "hazard"))
    versions.add("5.1.0", result(1))
    versions.add("5.1.0", result(2, "overlap"))
    versions.add("5.1.0", result(3, "overlap"))  # the newer one did not come to it
    versions.add("5.2.0", result(0, "overlap"))
    versions.add("5.2.0", result(1, "hazard"))
    versions.add("5.2.0", result(2, outcome="refused"))
    told = [(item.kind, item.measured["change"]) for item in versions.joined().findings]
    assert told == [
        ("overlap", EVERYWHERE),
        ("hazard", "fixed in 5.2.0"),
        ("hazard", "new in 5.2.0"),
        ("overlap", "in every version that tells (not 5.2.0)"),
    ]
    assert versions.blocks("5.2.0") == 1


def test_the_installed_version_needs_no_folder(monkeypatch):
    monkeypatch.setattr(velas, "installed", lambda: {velas.PACKAGE: "5.1.0"})
    assert velas.vela_folder("5.1.0") is None


def test_a_folder_of_the_cache_is_taken_as_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = tmp_path / "armdiff" / "velas" / "9.9.9"
    made.mkdir(parents=True)
    assert velas.vela_folder("9.9.9") == made


def test_what_is_no_version_never_reaches_pip():
    with pytest.raises(BadInput, match="is no version"):
        velas.vela_folder("--index-url=http://example.org")


def test_pip_s_failure_is_one_line_with_a_remedy_and_leaves_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def refused(words: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert words[-1] == "ethos-u-vela==9.9.9"
        return subprocess.CompletedProcess(words, 1, "", "noise\nERROR: No matching distribution found\n")

    monkeypatch.setattr(velas.subprocess, "run", refused)
    with pytest.raises(CannotRun, match=r"No matching distribution found; leave out '--vela 9\.9\.9', or try 'pip"):
        velas.vela_folder("9.9.9")
    assert list((tmp_path / "armdiff" / "velas").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "armdiff").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(CannotRun, match="set XDG_CACHE_HOME"):
        velas.vela_folder("9.9.9")


def test_a_process_holds_one_vela(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ethosu", object())
    with pytest.raises(RuntimeError, match="imported Vela already"):
        velas.use_vela(tmp_path)
    assert str(tmp_path) not in sys.path
    assert installed()  # the cache of what is installed stays as it was


def test_a_version_that_a_signal_kept_from_beginning_does_not_hide_what_another_found():
    versions = Versions({"5.1.0": VelaTally(), "5.2.0": VelaTally()})
    assert [*versions.begun().tallies] == ["5.1.0"]
    versions.add("5.1.0", result(0, "overlap"))
    assert versions.joined().findings == []
    begun = versions.begun()
    assert [*begun.tallies] == ["5.1.0"]
    assert [item.kind for item in begun.joined().findings] == ["overlap"]
    versions.add("5.2.0", result(0))
    assert [*versions.begun().tallies] == ["5.1.0", "5.2.0"]
