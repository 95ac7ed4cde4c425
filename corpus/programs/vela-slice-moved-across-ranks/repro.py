"""SLICE -> RESHAPE -> TILE on ethos-u55-128: differs from the TOSA reference

Needs ethos-u-vela 5.1.0, tosa-tools 2026.5.0 and numpy.
Nothing here executes a command stream. The outputs of the stream in io.npz come from armdiff's functional model of the
Ethos-U; an FVP or hardware can be given the same inputs.
Exit status 1: Vela made the very stream in which this was found; 3: it made another one, which has to be
executed to be judged; 2: Vela or the reference model failed.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import tosa_reference_model

FLAGS = ["--accelerator-config=ethos-u55-128", "--config=Arm/vela.ini", "--system-config=Ethos_U55_High_End_Embedded", "--memory-mode=Shared_Sram", "--output-format=raw"]
here = Path(__file__).resolve().parent


def main():
    command = [*FLAGS, f"--output-dir={here / 'program_vela'}", str(here / "program.tosa")]
    print("ethos-u-vela", metadata.version("ethos-u-vela"))
    print("$ vela", *FLAGS, "program.tosa", flush=True)
    vela = subprocess.run([sys.executable, "-m", "ethosu.vela", *command], capture_output=True, text=True)
    if vela.returncode:
        print(f"Vela ended with status {vela.returncode}:", *(vela.stdout + vela.stderr).splitlines()[-6:], sep="\n  ")
        return 2
    io = np.load(here / "io.npz")
    inputs, expected, actual = (
        [io[f"{word}_{i}"] for i in range(sum(name.startswith(f"{word}_") for name in io.files))]
        for word in ("in", "expected", "actual")
    )
    flatbuffer = (here / "program.tosa").read_bytes()
    outputs, status = tosa_reference_model.run(flatbuffer, inputs, initialize_variable_tensor_from_numpy=1)
    print("TOSA reference model:", status.name)
    if len(outputs) != len(expected) or any((one != two).any() for one, two in zip(outputs, expected)):
        print("The reference model returns something else than when this was found.")
        return 2
    for place, (right, seen) in enumerate(zip(expected, actual)):
        wrong = np.argwhere(right != seen)
        print(f"output {place} {list(right.shape)}: {len(wrong)} of {right.size} elements wrong on armdiff's model")
        for at in map(tuple, wrong[:8]):
            print(f"  {list(map(int, at))}: expected {right[at]}, actual {seen[at]}")
    made = np.load(here / "program_vela" / "program_vela.npz")
    if made["cmd_data"].tobytes() == io["cmd_data"].tobytes():
        print("Vela made the very command stream in which this was found. The bug shows.")
        return 1
    print("Vela made another command stream; an Ethos-U, or a model of one, has to execute it.")
    return 3


if __name__ == "__main__":
    sys.exit(main())
