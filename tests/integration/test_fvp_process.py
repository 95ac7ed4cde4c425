"""An FVP's process: its group, its time limit, its version, and what doctor says of one that does not start."""

import os
import shutil
import sys
from contextlib import contextmanager

import pytest

from harness.case.target import parse_target
from harness.pipeline.doctor import fvp_checks
from harness.pipeline.fvp.discovery import (
    FvpMissing,
    version_of,
)
from harness.pipeline.fvp.process import run
from harness.pipeline.legs.ethos_u_fvp import missing
from tests.fvp import StandIn, ends

TOOLS = "/usr/bin:/bin"


@contextmanager
def standard_input(data):
    """Give this process something to read, as a worker's pipe of frames would."""
    reading, writing = os.pipe()
    saved = os.dup(0)
    os.dup2(reading, 0)
    os.write(writing, data)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(reading)


def test_a_process_has_a_group_of_its_own_and_reads_nothing(tmp_path):
    code = (
        "import os, sys; print(repr(sys.stdin.read()) + '\\r'); print(os.getpgrp() == os.getpid()); "
        "print('err', file=sys.stderr); sys.exit(5)"
    )
    with standard_input(b"frame"):
        status, output = run([sys.executable, "-c", code], 60.0, {}, tmp_path, tmp_path / "log")
    assert status == 5
    assert "\r" not in output
    assert sorted(output.split()) == ["''", "True", "err"]


def test_a_process_that_takes_too_long_is_killed_with_its_children(tmp_path):
    command = ["/bin/sh", "-c", "sleep 600 & echo $!; wait"]
    status, output = run(command, 0.3, {"PATH": TOOLS}, tmp_path, tmp_path / "log")
    assert status is None
    assert ends(output.strip())


def executable(path, text="#!/bin/sh\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_fvp_that_does_not_start_is_missing_with_its_own_words(tmp_path):
    good = executable(tmp_path / "good", "#!/bin/sh\necho\necho 'Fast Models [1]'\n")
    assert version_of(good, {"PATH": TOOLS}) == "Fast Models [1]"
    bad = executable(tmp_path / "bad", "#!/bin/sh\necho 'libpython3.9.so: cannot open' >&2\nexit 127\n")
    with pytest.raises(FvpMissing, match=r"bad does not start: libpython3\.9\.so: cannot open"):
        version_of(bad, {"PATH": TOOLS})
    with pytest.raises(FvpMissing, match="silent does not start: exit status 1 and no output"):
        version_of(executable(tmp_path / "silent", "#!/bin/sh\nexit 1\n"), {"PATH": TOOLS})


def test_what_is_missing_is_one_line(tmp_path):
    reason = missing(parse_target("ethos-u55-128"), {"PATH": str(tmp_path)})
    assert reason == (
        "no FVP for ethos-u55-128: FVP_Corstone_SSE-300_Ethos-U55 is not on PATH ('armdiff doctor' has the steps)"
    )
    stand_in = StandIn(tmp_path / "s").install()
    assert missing(parse_target("ethos-u55-128"), stand_in.environment) is None
    assert "no runner ELF for ethos-u55-256" in missing(parse_target("ethos-u55-256"), stand_in.environment)


def test_doctor_tells_the_binary_s_own_version_and_the_runner_found(tmp_path):
    stand_in = StandIn(tmp_path / "s").install()
    checks = {item.name: item for item in fvp_checks(stand_in.environment, tmp_path)}
    found, runner = checks["FVP for ethos-u55"], checks["FVP runner for ethos-u55"]
    assert found.ok
    assert found.what.startswith("STAND-IN FOR AN ARM FVP")
    assert str(stand_in.folder / "bin") in found.what
    assert runner.ok
    assert runner.what == f"ethos-u55-128: {stand_in.elf} (named by variable)"
    assert not checks["FVP for ethos-u85"].ok


def test_doctor_says_of_a_broken_fvp_what_it_said(tmp_path):
    stand_in = StandIn(tmp_path / "s").install()
    stand_in.mode("broken")
    [found] = [item for item in fvp_checks(stand_in.environment, tmp_path) if item.name == "FVP for ethos-u55"]
    assert not found.ok
    assert "does not start: FVP_Corstone_SSE-300_Ethos-U55: error while loading shared libraries" in found.what
    assert shutil.which(stand_in.binary, path=stand_in.environment["PATH"]) is not None
