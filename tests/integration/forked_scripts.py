"""Run scripts one after the other, each in a fork of a process that has imported ExecuTorch already.

``python -I forked_scripts.py FOLDER…``: ``repro.py`` of each folder runs with that folder as its current one, and what
it prints goes to ``output`` beside it; its exit status (minus the signal that ended it) is printed here, a line of
``STATUS FOLDER`` each. A script of its own takes five to nine seconds to import what it needs; a fork takes one or
two for everything. armdiff cannot be imported in a fork, as it could not where a maintainer runs the script.

This file is a program: tests start it and never import it.
"""

import gc
import importlib
import os
import runpy
import sys
import traceback

WANTED = (
    "ethosu.vela.vela",
    "executorch.backends.arm.ethosu",
    "executorch.backends.arm.quantizer",
    "executorch.backends.arm.tosa.partitioner",
    "executorch.exir",
    "tosa.TosaGraph",
    "tosa_reference_model",
    "torch.nn.functional",
    "torchao.quantization.pt2e.quantize_pt2e",
)


def run(folder: str) -> int:
    """Run the script of a folder in a fork; its exit status, as ``subprocess`` tells it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.chdir(folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.modules["harness"] = None  # type: ignore[assignment]  # what Python documents for "cannot be imported"
    status = 0
    try:
        runpy.run_path("repro.py", run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  the fork must end here, whatever the script raised
        traceback.print_exc()
        status = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    for name in WANTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a third of a script's time would go into looking through what is imported here
    for folder in sys.argv[1:]:
        sys.stdout.write(f"{run(folder)} {folder}\n")
        sys.stdout.flush()
