"""``python -m tests.mutation --graphs 50 --mutants 12 --seed 0 --json FILE``: print the mutation score."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import warnings
from pathlib import Path


def main() -> None:
    """Set the process up as a worker does, run, print the tables."""
    parser = argparse.ArgumentParser(description="mutation score of the value oracles on generated TOSA graphs")
    parser.add_argument("--graphs", type=int, default=50)
    parser.add_argument("--mutants", type=int, default=12, help="a graph")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write every verdict to this file")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # native prints go to standard error
    warnings.filterwarnings("ignore")
    import torch

    torch.set_num_threads(1)
    from tests.mutation.report import lines
    from tests.mutation.score import score

    logging.disable(logging.WARNING)
    gc.collect()
    gc.freeze()  # as harness.workers.worker: what the imports leave never dies, and children share its pages

    def announce(line: str) -> None:
        sys.stderr.write(line + "\n")
        gc.collect()

    result = score(options.graphs, options.mutants, options.seed, announce)
    answers.write("\n".join(lines(result)) + "\n")
    answers.flush()
    if options.json:
        options.json.write_text(json.dumps(result.data(), indent=1))


if __name__ == "__main__":
    main()
