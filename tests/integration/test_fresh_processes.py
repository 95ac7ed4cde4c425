"""In a process of its own: what is imported, and what threads and hash seeds may not change."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from generators.cases import draw_block
from harness.case.case import encode_case
from tests.integration.conftest import sigmoid_case
from tests.unit.reporting_runs import each_target, finding, make_run

ROOT = Path(__file__).parents[2]


def test_types_are_worked_out_before_threads_read_cases(tmp_path: Path) -> None:
    """What msgspec works out at the first use of a type is not guarded: two threads at once have crashed there."""
    (tmp_path / "case.json").write_bytes(encode_case(sigmoid_case()))
    script = (
        "import sys, pathlib\n"
        "from harness.case import case, reading\n"
        "case.Case.__annotations__ = {}  # whoever works out the type now finds no fields\n"
        "print(reading.read_case(pathlib.Path(sys.argv[1])).target)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.strip() == sigmoid_case().target, done.stderr


@pytest.mark.parametrize("module", ["harness.cli.benchmark.contestant", "harness.cli.command"])
def test_the_command_line_can_be_imported_first_and_without_torch(module: str) -> None:
    """Workers import torch. A verb that needs none, or that fails at once, answers in half a second."""
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reporting_does_not_import_torch(tmp_path):
    make_run(tmp_path, each_target("relu", findings=[finding()]))
    script = (  # in a process of its own: other tests of this one may have imported it
        "import sys; from pathlib import Path; from harness.reports.reporting import write_reports; "
        "from harness.campaign.run_folder import read_run; folder = Path(sys.argv[1]); "
        "write_reports(read_run(folder), (), None, folder); "
        "sys.exit(bool({'torch', 'executorch'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert (tmp_path / "report.html").exists()


def test_the_model_stands_alone() -> None:
    code = "import sys, harness.ethosu; print(sorted({'torch', 'executorch', 'ethosu', 'tosa'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


DIGEST = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
if len(sys.argv) > 2:
    import many_numbers
from generators.cases import draw_block
from harness.case.case import encode_case
data = b"".join(encode_case(case) for cases in draw_block(0, 0, 120, ["TOSA-1.0+INT"]) for case in cases)
print(hashlib.sha256(data).hexdigest())
"""


def test_blocks_do_not_depend_on_process_hash_seed_or_other_modules(tmp_path: Path) -> None:
    """Hypothesis mixes integers that it finds in local modules (of up to 1024) into draws."""
    (tmp_path / "many_numbers.py").write_text("NUMBERS = [" + ", ".join(map(str, range(100, 1100))) + "]\n")
    digests = []
    for hash_seed, folders in (("1", [ROOT]), ("2", [ROOT, tmp_path])):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST, *map(str, folders)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
        )
        digests.append(done.stdout.strip())
    here = b"".join(encode_case(case) for (case,) in draw_block(0, 0, 120, ("TOSA-1.0+INT",)))
    assert digests == [hashlib.sha256(here).hexdigest()] * 2
