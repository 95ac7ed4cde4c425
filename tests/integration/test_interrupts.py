"""Ctrl-C and SIGTERM as users send them: real processes, at several moments. What was done is kept, status 130."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from harness.campaign.run_folder import read_run

ARMDIFF = (sys.executable, "-m", "harness.cli")
MODEL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 4))
calibration = [(torch.rand(1, 8),) for _ in range(2)]
"""


# what a worker's process imports for seconds, without their work
TORCH = """
import pathlib, time
pathlib.Path({marker!r}).touch()
time.sleep(600)
"""


def start(folder: Path, *words: object, **environment: str) -> subprocess.Popen[str]:
    """A command in a session of its own, whose workers' logs would go to ``folder/tmp``."""
    (folder / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [*ARMDIFF, *map(str, words)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), **environment},
        start_new_session=True,
        # whoever runs the tests may ignore it, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )


def until(there: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + 300
    while not there() and (process is None or process.poll() is None) and time.monotonic() < end:
        time.sleep(0.05)


def start_importing(folder: Path, *words: object) -> subprocess.Popen[str]:
    """A command whose worker is in the middle of importing torch when this returns."""
    package = folder / "stand-in" / "torch"
    package.mkdir(parents=True)
    marker = folder / "importing"
    (package / "__init__.py").write_text(TORCH.format(marker=str(marker)))
    process = start(folder, *words, PYTHONPATH=f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    until(marker.exists, process)
    assert marker.exists()
    return process


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str, str]:
    process.send_signal(number)
    out, errors = process.communicate(timeout=120)
    assert "Traceback" not in out + errors
    return process.returncode, out, errors


FUZZ = ("fuzz", "--max-examples", 3, "--target", "TOSA-1.0+INT", "--jobs", 1, "--no-minimize", "--out", "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.15, 0.3, 0.6])
def test_a_signal_while_it_starts(tmp_path: Path, delay: float, number: signal.Signals) -> None:
    process = start(tmp_path, *FUZZ)
    time.sleep(delay)
    interrupted_at_the_start(tmp_path, process, number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_worker_imports_torch(tmp_path: Path, number: signal.Signals) -> None:
    interrupted_at_the_start(tmp_path, start_importing(tmp_path, *FUZZ), number)


def interrupted_at_the_start(tmp_path: Path, process: subprocess.Popen[str], number: signal.Signals) -> None:
    status, out, errors = ended(process, number)
    # before the handler there is none: on a busy machine the shell's own 130 or 143
    assert status in (130, -number), (out, errors)
    if status == 130:
        assert "armdiff fuzz --max-examples 3 --target TOSA-1.0+INT --jobs 1" in out + errors
    assert not [*(tmp_path / "tmp").glob("armdiff*")]


def test_a_campaign_is_kept_and_the_command_that_is_printed_goes_on(
    tmp_path: Path, workers_forked: None, command_here: Callable[..., Result]
) -> None:
    process = start(tmp_path, *FUZZ)
    results = tmp_path / "run" / "results.jsonl"
    until(lambda: results.exists() and bool(results.read_bytes()), process)
    status, out, errors = ended(process, signal.SIGTERM)
    assert status == 130, (out, errors)
    assert out.splitlines()[-1] == (
        "interrupted; go on with: armdiff fuzz --max-examples 3 --target TOSA-1.0+INT --jobs 1 --no-minimize "
        "--out run --resume"
    )
    assert "\nnothing new" not in out
    stopped = read_run(tmp_path / "run")
    assert stopped.info.state == "interrupted"
    assert 1 <= len(stopped.done) < 3
    assert stopped.info.cases == len(stopped.done)
    assert all(item.result.processor > 0 for item in stopped.done)
    assert (tmp_path / "run" / "report.html").exists()
    assert not [*(tmp_path / "tmp").glob("armdiff*")]

    other = start_importing(tmp_path, *FUZZ, "--resume")
    assert read_run(tmp_path / "run").info.state == "running"
    refused = command_here(*FUZZ, "--resume", cwd=tmp_path)
    assert refused.exit_code == 2
    said = refused.stderr.splitlines()[-1]
    assert said.startswith(f"armdiff: run: another run works in it (process {other.pid} since ")
    assert f"end it with 'kill {other.pid}', or give another --out" in said
    ended(other, signal.SIGTERM)

    again = command_here("fuzz", "--resume", "--out", "run", "--no-minimize", cwd=tmp_path)
    assert again.exit_code in (0, 1), again.output
    whole = read_run(tmp_path / "run")
    assert whole.info.state == "done"
    assert [item.number for item in whole.done] == [0, 1, 2]
    assert [item.result.case for item in whole.done[: len(stopped.done)]] == [item.result.case for item in stopped.done]


def test_a_second_signal_ends_it_at_once_and_takes_the_workers_along(tmp_path: Path) -> None:
    process = start(tmp_path, *FUZZ)
    until((tmp_path / "run" / "run.json").exists, process)
    assert process.stderr
    process.send_signal(signal.SIGINT)
    while "keeping what was done" not in process.stderr.readline():
        assert process.poll() is None
    status, out, errors = ended(process, signal.SIGINT)
    assert status == 130
    assert "--resume" in out + errors
    assert not [*(tmp_path / "tmp").glob("armdiff*")]


def test_check_says_which_targets_are_left(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    words = ("check", "model.py", "--jobs", 1, "--target", "TOSA-1.0+INT", "--target", "ethos-u55-128", "--out", "out")
    process = start(tmp_path, *words)
    until((tmp_path / "out/check/model-TOSA-1.0+INT/case.json").exists, process)
    status, out, errors = ended(process, signal.SIGINT)
    assert status == 130, (out, errors)
    left = out.splitlines()[-1]
    assert left.startswith("interrupted; go on with: armdiff check model.py --jobs 1 --out out --target ")
    assert left.endswith("ethos-u55-128")


VELA = ("vela", "--seed", 2, "--time", "5m", "--accelerator", "ethos-u55-128", "--out", "out", "--json", "out.json")


def children_of(process: subprocess.Popen[str]) -> list[Path]:
    return [
        Path("/proc", name) for name in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]


@pytest.mark.parametrize("to", ["the process", "its group"])
def test_vela_keeps_the_listing_and_the_json(tmp_path: Path, to: str) -> None:
    process = start(tmp_path, *VELA)
    until(lambda: bool([*tmp_path.glob("out/vela/*/program.json")]), process)
    children = children_of(process)
    assert children
    if to == "its group":  # what a terminal does, and timeout(1) with SIGTERM
        os.killpg(process.pid, signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
        status = process.returncode
    else:
        status, out, errors = ended(process, signal.SIGINT)
    assert status == 130, (out, errors)
    assert errors.count("interrupted") == 1
    *listing, verdict, last = out.splitlines()
    assert any("known finding" in line or "new finding" in line or "resembling" in line for line in listing)
    assert verdict.startswith("until then: ")
    assert last == (
        "interrupted; programs with findings are in out/vela; the same command begins again: armdiff vela --seed 2 "
        "--time 5m --accelerator ethos-u55-128 --out out --json out.json"
    )
    data = json.loads((tmp_path / "out.json").read_bytes())
    assert data["interrupted"]
    assert data["programs"]["ethos-u55-128"] == data["cases"] >= 1
    assert {item["case"] for item in data["findings"]} == {str(file) for file in stored(tmp_path)}
    assert listing[0].startswith(f"{data['cases']} programs ({data['cases']} on ethos-u55-128), ")
    assert not [child for child in children if child.exists()]


def stored(folder: Path) -> list[Path]:
    return [file.relative_to(folder) for file in folder.glob("out/vela/*/program.json")]


def test_a_second_signal_ends_vela_with_its_children(tmp_path: Path) -> None:
    process = start(tmp_path, *VELA)
    until(lambda: bool(children_of(process)), process)
    children = children_of(process)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 130, (out, errors)
    assert "Traceback" not in out + errors
    until(lambda: not [child for child in children if child.exists()])  # they die with their parent
    assert not [child for child in children if child.exists()]


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "--graphs", 2, "--variants", 2, "--jobs", 1, "--out", "out"),
        ("census", "--max-examples", 2, "--jobs", 1, "--out", "out"),
        ("certify", "neg-rescaled", "--graphs", 5, "--jobs", 1, "--out", "out"),
        ("disasm", "CASE", "--target", "ethos-u55-128"),
        ("replay", "CASE", "--jobs", 1),
        ("reduce", "CASE", "--jobs", 1, "--out", "out"),
    ],
    ids=lambda words: words[0],
)
def test_every_verb_that_waits_for_a_worker(tmp_path: Path, words: tuple[object, ...]) -> None:
    corpus = Path(__file__).resolve().parents[2] / "corpus" / "found" / "neg-ignores-scale"
    process = start_importing(tmp_path, *(str(corpus / "case.json") if word == "CASE" else word for word in words))
    status, out, errors = ended(process, signal.SIGINT)
    assert status == 130, (out, errors)
    last = (out or errors).strip().splitlines()[-1]
    assert "interrupted; " in last
    assert f"armdiff {words[0]}" in last
    assert not [*(tmp_path / "tmp").glob("armdiff*")]
