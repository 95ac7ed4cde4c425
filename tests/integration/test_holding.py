"""A folder is one run's until its process ends."""

import os
import subprocess
import sys

import pytest

from harness.campaign.holding import hold
from harness.case.errors import BadInput

HOLDER = "import sys; from pathlib import Path; from harness.campaign.holding import hold; hold(Path(sys.argv[1]));"


def test_a_folder_is_one_run_s_until_its_process_ends(tmp_path):
    script = f"{HOLDER} print('held', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "held\n"
    with pytest.raises(BadInput) as refused:
        hold(tmp_path)
    assert f"another run works in it (process {other.pid} since 20" in str(refused.value)
    assert f"wait for it, end it with 'kill {other.pid}', or give another --out" in str(refused.value)
    other.kill()
    other.wait()
    hold(tmp_path)
    hold(tmp_path)  # its own
    third = subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], capture_output=True, text=True)
    assert f"process {os.getpid()} since" in third.stderr
