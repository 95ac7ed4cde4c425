"""STAND-IN FOR AN ARM FVP, for armdiff's tests: it simulates nothing.

It takes the place of FVP and runner together: it speaks the command line (``--version``, ``-C``, ``-a``,
``--timelimit``), reads the exchange folder through the semihosting options, and answers with outputs
that a test prepared, or fails in the way that the test asked for. Every run prints that it is a
stand-in.

The folder STAND_IN_FOLDER belongs to the test: ``mode`` (a word, see ``MODES``), ``answers/<key>/out-N.bin``
with the key of the inputs (``key_of``), and ``calls.jsonl``, to which each run appends what it was given.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

BANNER = "STAND-IN FOR AN ARM FVP (armdiff tests, no simulator)"
RUNNER = "[executorch:arm_executor_runner.cpp:1 main()]"
MODES = {
    "answer": "write the prepared outputs",
    "broken": "do not even say a version",
    "hard-fault": "report a hard fault, exit status 0",
    "assert": "report an assertion, exit status 0",
    "error": "log an error, exit status 0",
    "exit": "say nothing, exit status 3",
    "time-over": "run into the FVP's own time limit, exit status 0",
    "hang": "start a child and never end",
    "truncate": "leave out the last byte of the first output",
    "too-long": "write one byte more of the first output",
    "extra": "write one output more",
    "once": "write outputs in the first run only",
    "kernel": "lack a kernel",
    "memory": "lack memory",
}
BOARDS = {
    "FVP_Corstone_SSE-300_Ethos-U55": ("mps3_board", ""),
    "FVP_Corstone_SSE-300_Ethos-U65": ("mps3_board", ""),
    "FVP_Corstone_SSE-320": ("mps4_board", "mps4_board.subsystem."),
}


def key_of(files):
    """The key of a run's inputs: a hash of their bytes, in order."""
    return hashlib.sha256(b"".join(files)).hexdigest()[:16]


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def stop(line, status=1):
    say(line)
    sys.exit(status)


def parsed(words):
    """Options of a command line, refusing what an FVP of these tests is never given."""
    options, elf, limit = {}, None, None
    rest = iter(words)
    for word in rest:
        if word == "-C":
            name, _, value = next(rest).partition("=")
            options[name] = value.strip("'")
        elif word == "-a":
            elf = next(rest)
        elif word == "--timelimit":
            limit = int(next(rest))
        else:
            stop(f"Error: STAND-IN: unknown option {word}", 64)
    return options, elf, limit


def main():
    name, folder = Path(sys.argv[1]).name, Path(os.environ["STAND_IN_FOLDER"])
    words = sys.argv[2:]
    mode = (folder / "mode").read_text().strip() if (folder / "mode").exists() else "answer"
    assert mode in MODES, mode
    if words == ["--version"]:
        if mode == "broken":
            stop(f"{name}: error while loading shared libraries: libpython (STAND-IN): cannot open", 127)
        stop(f"{BANNER}, {name}", 0)
    say(f"{BANNER}, {name}")
    options, elf, limit = parsed(words)
    board, part = BOARDS[name]
    if not any(option.startswith(f"{board}.uart0") for option in options) or not Path(elf or "none").is_file():
        stop("Error: STAND-IN: wrong board or no ELF", 64)
    line = options[f"{part}cpu0.semihosting-cmd_line"][:255].split()
    here = Path(options[f"{part}cpu0.semihosting-cwd"])
    if len(line) < 7:
        stop(f"F {RUNNER} Not right number of parameters!")
    pairs = list(zip(line[1::2], line[2::2], strict=True))
    named = dict(pairs)
    names = [value for option, value in pairs if option == "-i"]
    program = (here / named["-m"]).read_bytes()
    if program[4:6] != b"ET":
        stop(f"F {RUNNER} no program")
    files = [(here / item).read_bytes() for item in names]
    with (folder / "calls.jsonl").open("a") as log:
        call = {"macs": options[f"{part}ethosu.num_macs"], "elf": elf, "limit": limit, "line": " ".join(line)}
        log.write(json.dumps({**call, "stale": [item.name for item in here.glob("out-*")], "pid": os.getpid()}) + "\n")
    runs = len((folder / "calls.jsonl").read_text().splitlines())
    if mode == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (folder / "child").write_text(str(child.pid))
        say("waiting")
        time.sleep(600)
    fail(mode)
    answers = folder / "answers" / key_of(files)
    if not answers.is_dir():
        stop("E STAND-IN: no answer was prepared for these inputs")
    if mode == "once" and runs > 1:
        stop(f"I {RUNNER} Program complete, exiting.", 0)
    for file in answers.iterdir():
        data = file.read_bytes()
        if file.name == "out-0.bin":
            data = {"truncate": data[:-1], "too-long": data + b"\0"}.get(mode, data)
        (here / file.name.replace("out", named["-o"])).write_bytes(data)
    if mode == "extra":
        (here / f"{named['-o']}-7.bin").write_bytes(b"")
    say("E: Failed to initialize timing-adapter #0")  # what --fast makes of a runner with timing adapters
    stop(f"I {RUNNER} Program complete, exiting.", 0)


def fail(mode):
    """End as a run that fails ends."""
    if mode == "hard-fault":
        stop("Hard fault. irq=-13, lr=0x0, pc=0x0 (STAND-IN)", 0)
    if mode == "assert":
        stop("Assertion failed: false, file ethosu_driver.c (STAND-IN)", 0)
    if mode == "error":
        stop("E [executorch:EthosUBackend_Cortex_M.cpp:116 platform_execute()] Ethos-U invocation failed error (-1)", 0)
    if mode == "exit":
        sys.exit(3)
    if mode == "time-over":
        stop("Info: Simulation is stopping. Reason: CPU time has been exceeded.", 0)
    if mode == "kernel":
        stop("E [executorch:method.cpp:823 resolve_operator()] Missing operator: [2] aten::gelu.out")
    if mode == "memory":
        stop("E [executorch:memory_allocator.h:107 allocate()] Memory allocation failed: 99B requested, 1B available")


if __name__ == "__main__":
    main()
