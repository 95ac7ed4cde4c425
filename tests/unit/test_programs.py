"""The files that a viewer opens: what a worker hands back, under which names, and the commands for them."""

from types import SimpleNamespace

import pytest

from harness.case.errors import CannotRun
from harness.reports.programs import keep, netron, programs_in, programs_of
from harness.workers.protocol import Emitted


def pool(**answer):
    asked = []
    return SimpleNamespace(asked=asked, emit=lambda task: asked.append(task) or Emitted(**answer))


def test_a_case_comes_to_a_program_and_a_graph_for_each_delegate(tmp_path):
    workers = pool(program=b"pte", tosa={"lowered_module_0": b"zero", "lowered_module_1": b"one"})
    files = programs_of(workers, tmp_path / "1f2e.json", "1f2e", ("a-correction",))
    assert files == {"1f2e.pte": b"pte", "1f2e.lowered_module_0.tosa": b"zero", "1f2e.lowered_module_1.tosa": b"one"}
    assert workers.asked[0].corrections == ("a-correction",)
    assert set(programs_of(workers, tmp_path / "case.json")) == {
        "program.pte", "lowered_module_0.tosa", "lowered_module_1.tosa",
    }  # fmt: skip
    written = keep(files, tmp_path / "files")
    assert programs_in(tmp_path / "files") == programs_in(tmp_path / "files", "1f2e.") == written
    assert programs_in(tmp_path / "files", "1f2e.lowered_module_1") == written[2:]
    assert [file.read_bytes() for file in written] == [b"pte", b"zero", b"one"]


def test_what_does_not_compile_says_why(tmp_path):
    assert programs_of(pool(problem="stage lower fails"), tmp_path / "c.json") == "stage lower fails"
    assert programs_in(tmp_path / "none") == []


def test_a_folder_that_cannot_be_written_is_told_with_the_remedy(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotRun, match="cannot be written"):
        keep({"a.pte": b""}, tmp_path / "file")


def test_a_command_is_quoted():
    assert netron("../a b/x.tosa") == "netron '../a b/x.tosa'"
