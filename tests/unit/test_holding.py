"""One run at a time in a folder, and what is refused before anything runs."""

import sys

import pytest

from generators.search import database_at
from harness.campaign.holding import hold
from harness.case.errors import BadInput, CannotRun
from harness.case.interrupts import command
from harness.case.reading import decode_case
from harness.cli.results import need_writable
from harness.workers.deaths import late_capture
from harness.workers.protocol import CaptureTask


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(CannotRun, match=r"cannot be written .*; give another --out"):
            hold(folder)


def test_a_database_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file; give a folder"):
        database_at([str(tmp_path / "file")])
    assert database_at([str(tmp_path / "fresh")])


def test_results_that_cannot_be_written_are_refused_first(tmp_path):
    for file in (tmp_path / "no" / "x.json", tmp_path):
        with pytest.raises(CannotRun, match="give another file"):
            need_writable(str(file))
    need_writable(None)
    need_writable("-")
    need_writable(str(tmp_path / "x.json"))
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"graph": "\xa5"}', b"[]"])
def test_a_malformed_case_is_told_in_plain_words(data):
    with pytest.raises(BadInput) as refused:
        decode_case(data)
    assert "jSON" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_the_command_that_goes_on_keeps_what_was_asked(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["armdiff", "check", "my model.py", "--target", "a", "--target=b", "--jobs", "1"])
    assert command() == "armdiff check 'my model.py' --target a --target=b --jobs 1"
    assert command(instead={"--target": ["b"]}) == "armdiff check 'my model.py' --jobs 1 --target b"
    assert command(adding=["--jobs", "x"], dropping={"my model.py"}) == (
        "armdiff check --target a --target=b --jobs 1 x"
    )


def test_a_capture_that_does_not_end_names_its_line():
    task = CaptureTask(file="m.py", folder="f", target="t", recipe="r", seconds=5)
    log = 'Timeout (0:00:05)!\nThread 0x1:\n  File "m.py", line 7 in f\n  File "m.py", line 9\n'
    assert late_capture(task, log).startswith("m.py, line 7: is not captured after 5 s")
    assert late_capture(task, "").startswith("m.py: is not captured after 5 s")
