"""What a script did in its process. No torch."""

import pytest

from harness.reports.bugs import verify_repro
from harness.reports.bugs.verifying import DOES_NOT_SHOW, NEEDS_ENGINE, SHOWS, run_repro


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("print('The bug shows.'); raise SystemExit(1)", SHOWS),
        ("pass", DOES_NOT_SHOW),
        ("raise SystemExit(3)", NEEDS_ENGINE),
        ("raise KeyError('k')", "ended with status 1: KeyError: 'k'"),
        ("import os; print(os.environ.get('PYTHONPATH')); raise SystemExit(7)", "ended with status 7: None"),
    ],
)
def test_what_a_script_did_is_told_by_its_status_and_words(tmp_path, body, outcome, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "repro.py").write_text(body)
    assert verify_repro(tmp_path) == outcome


def test_a_script_that_hangs_is_ended(tmp_path):
    (tmp_path / "repro.py").write_text("import time; time.sleep(60)")
    assert run_repro(tmp_path, timeout=0.5).outcome == "ran longer than 0.5 s"
