"""``--ethos-u-engine`` on the command line: an FVP that is asked for and missing is exit status 3."""

import pytest
from click.testing import CliRunner

from harness.cli.command import main


@pytest.mark.parametrize("choice", ["fvp", "both"])
@pytest.mark.parametrize("verb", ["fuzz", "check", "replay"])
def test_an_fvp_that_was_asked_for_and_is_missing_is_status_3_with_the_remedy(tmp_path, monkeypatch, verb, choice):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "model.py").write_text("")
    (tmp_path / "seed").mkdir()
    words = {
        "fuzz": ["--target", "ethos-u55-128", "--max-examples", "1"],
        "check": [str(tmp_path / "model.py"), "--target", "ethos-u85-256"],
        "replay": [],
    }[verb]
    if verb == "replay":
        monkeypatch.setattr("harness.cli.replay.read_case", lambda folder: _Case("ethos-u55-128"))
    result = CliRunner().invoke(main, [verb, *words, "--ethos-u-engine", choice])
    assert result.exit_code == 3, result.output
    [line] = result.output.strip().splitlines()
    assert f"--ethos-u-engine {choice}: no FVP for ethos-u" in line
    assert "is not on PATH" in line
    assert line.endswith("install it, or use --ethos-u-engine model")


class _Case:
    def __init__(self, target):
        self.target = target


def test_an_unknown_engine_is_wrong_usage():
    result = CliRunner().invoke(main, ["fuzz", "--ethos-u-engine", "hardware"])
    assert result.exit_code == 2
    assert "'model', 'fvp', 'both'" in result.output
