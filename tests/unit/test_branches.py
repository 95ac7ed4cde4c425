"""Branches of the Arm backend: measuring them (on a stand-in package) and putting them together. No torch."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from harness.campaign.run_folder import Done
from harness.case.case import Seeds
from harness.reports.reporting.passes import Module, passes
from harness.workers.branches import RATE, is_measured, measured
from harness.workers.protocol import Branches, CaseResult
from tests.unit.reporting_runs import chain_case

SOURCE = """\
def choose(x):
    if x > 0:
        return "up"
    for _ in range(2):
        x += 1
    return x
"""


@pytest.fixture
def backend(tmp_path: Path) -> tuple[Path, ModuleType]:
    """A folder with two modules of passes, and the first of them."""
    folder = tmp_path / "_passes"
    folder.mkdir()
    (folder / "first.py").write_text(SOURCE)
    (folder / "second.py").write_text(SOURCE)
    (tmp_path / "elsewhere.py").write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("first", folder / "first.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tmp_path, module


def test_a_branch_is_a_way_out_of_a_line_that_has_several(backend: tuple[Path, ModuleType]) -> None:
    root, module = backend
    with measured(root) as up:
        module.choose(1)
    with measured(root) as down:
        module.choose(-5)

    assert up[0].taken == {"_passes/first.py": ((2, 3),)}
    assert down[0].taken == {"_passes/first.py": ((2, 4), (4, 5), (4, 6))}
    assert up[0].ways == {"_passes/first.py": 4, "_passes/second.py": 4}


def test_measuring_ends_with_the_block(backend: tuple[Path, ModuleType]) -> None:
    root, module = backend
    before = sys.gettrace()
    with pytest.raises(RuntimeError), measured(root) as found:
        raise RuntimeError
    module.choose(1)
    assert sys.gettrace() is before
    assert found == []


def test_one_case_in_forty_is_measured_whatever_runs_before_it() -> None:
    cases = [chain_case("relu", seeds=Seeds(evaluation=seed)) for seed in range(50 * RATE)]
    chosen = [case for case in cases if is_measured(case, ())]
    assert 30 < len(chosen) < 70
    assert not any(is_measured(case, ("qmin-clamped",)) for case in cases)


def test_a_result_with_branches_survives_its_line() -> None:
    result = CaseResult(case="c", branches=Branches(taken={"a.py": ((1, 2), (3, -1))}, ways={"a.py": 4}))
    assert msgspec.json.decode(msgspec.json.encode(result), type=CaseResult) == result


def test_what_cases_took_is_put_together() -> None:
    ways = {"a.py": 4, "b.py": 2, "c.py": 6}
    rows = [
        Branches(taken={"a.py": ((1, 2), (1, 3))}, ways=ways),
        None,
        Branches(taken={"a.py": ((1, 2),)}, ways=ways),
        Branches(taken={"a.py": ((1, 2),), "b.py": ((7, 8),)}, ways=ways),
    ]
    found = passes([Done(number=n, at=0.0, result=CaseResult(case="c", branches=row)) for n, row in enumerate(rows)])

    assert (found.cases, found.taken, found.ways) == (3, 3, 12)
    assert found.fresh == (2, 0, 1)
    assert found.share_of_fresh == pytest.approx(0.5)
    assert found.modules == (Module("c.py", 0, 6), Module("a.py", 2, 4), Module("b.py", 1, 2))
    assert found.never == ("c.py",)


def test_a_run_without_measured_cases_has_none() -> None:
    found = passes([Done(number=0, at=0.0, result=CaseResult(case="c"))])
    assert (found.cases, found.taken, found.share_of_fresh) == (0, 0, 0.0)
