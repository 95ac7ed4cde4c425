"""RESIZE on ethos-u55-128: Vela ended with SIGSEGV while it compiled RESIZE

Needs ethos-u-vela 5.1.0, tosa-tools 2026.5.0 and numpy.
Exit status 1: Vela fails; 0: it compiles the file.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

FLAGS = ["--accelerator-config=ethos-u55-128", "--config=Arm/vela.ini", "--system-config=Ethos_U55_High_End_Embedded", "--memory-mode=Shared_Sram", "--output-format=raw"]
here = Path(__file__).resolve().parent


def main():
    command = [*FLAGS, f"--output-dir={here / 'program_vela'}", str(here / "program.tosa")]
    print("ethos-u-vela", metadata.version("ethos-u-vela"))
    print("$ vela", *FLAGS, "program.tosa", flush=True)
    vela = subprocess.run([sys.executable, "-m", "ethosu.vela", *command], capture_output=True, text=True)
    if vela.returncode:
        print(f"Vela ended with status {vela.returncode}:", *(vela.stdout + vela.stderr).splitlines()[-6:], sep="\n  ")
        print("The bug shows.")
        return 1
    print("The bug does not show.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
