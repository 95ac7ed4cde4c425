"""``python -m harness.pipeline.fvp TARGET``: print what builds the runner for a target in ExecuTorch's source tree."""

import sys

from harness.case.target import parse_target
from harness.pipeline.fvp.advice import runner_command
from harness.pipeline.fvp.boards import BOARDS

[word] = sys.argv[1:]
target = parse_target(word)
if target.family not in BOARDS:
    sys.exit(f"{word}: no FVP simulates it; write an Ethos-U target such as ethos-u55-128")
sys.stdout.write(f"{runner_command(BOARDS[target.family], word)}\n")
