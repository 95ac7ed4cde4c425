"""ExecuTorch's runtime in a process of its own: native code may die, and may be that of another release.

``RuntimeProcess`` loads programs by name and runs them. A process that dies or is late is ended and described
(``RuntimeDied``); what the runtime refuses is ``RuntimeRefused``. One process serves all cases of a worker, and another
one those of a fork of it (``harness.workers.forks``). Its limits are its own: the pool's look at the worker alone.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.compat.runtime.forking import Forked

SERVING = Path(__file__).with_name("serving.py")
SECONDS = 60.0
"""What one question may take; on portable kernels loading a program takes milliseconds."""
STARTING = 120.0
"""What importing torch may take on a busy machine."""
_LINES = 12
_LOGGED = re.compile(r"\[\w+\.(?:cpp|h):\d+\] ")
_COMPLAINS = re.compile(r"(?i)fail|missing|expected|invalid|\bnot\b|cannot|error")
_HARMLESS = re.compile(r"\[cpuinfo_utils\.cpp:|\] Failed to find extension")
"""The first is said once a process, of files in which the runtime looks for the number of cores."""
_KERNEL = re.compile(r"KernelCall failed at instruction \S+ in operator (\S+): ")
_LACKING = re.compile(r"Missing operator: \[\d+\] (\S+)")


class RuntimeRefused(RuntimeError):
    """The runtime raised: it could not load the program, or a kernel failed.

    Its own error is a number; why is in the first complaint that it printed, which comes first here.

    :ivar lacks: a kernel that it was built without, or empty.
    """

    def __init__(self, error: str, log: str) -> None:
        logged = (line for line in log.splitlines() if _LOGGED.match(line) and not _HARMLESS.search(line))
        lines = [line for _, _, line in (line.partition("] ") for line in logged) if _COMPLAINS.search(line)]
        kernel = _KERNEL.search(log)
        why = f"{kernel[1]}: {lines[0]}" if kernel and lines else lines[0] if lines else error
        self.lacks = found[1] if (found := _LACKING.search(log)) else ""
        super().__init__("\n".join(dict.fromkeys(filter(None, (why, error, log)))))


class RuntimeDied(RuntimeError):
    """The process ended, or was ended, instead of answering.

    :param kind: the signal's name, ``exit N``, or ``Hang``.
    :param log: the last lines that it printed.
    :ivar last: the very last of them, or the kind.
    """

    def __init__(self, kind: str, doing: str, log: str) -> None:
        self.last = (log.strip().splitlines() or [kind])[-1]
        super().__init__(
            f"ExecuTorch's runtime ended with {kind} while it should {doing}" + (f"\n{log}" if log else "")
        )


@dataclass(frozen=True)
class RuntimeTensor:
    """A tensor on its way in or out.

    :param order: axes from the slowest to the fastest in memory.
    :param data: its bytes in that order.
    """

    dtype: str
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    data: bytes


Value = RuntimeTensor | int | float | bool | str | None


@dataclass
class RuntimeProcess:
    """A process that has said that it is ready.

    :param seconds: what one question may take.
    :ivar backends: names of the backends that its runtime has.
    """

    process: subprocess.Popen[bytes] | Forked
    log: IO[bytes]
    backends: tuple[str, ...] = ()
    seconds: float = SECONDS
    owner: int = field(default_factory=os.getpid)
    _buffer: bytearray = field(default_factory=bytearray)

    def describe(self, program: bytes) -> dict[str, list[dict[str, Any] | None]]:
        """What a program has ``taken`` and ``given`` as the runtime says: scalar type, sizes and bytes, or None."""
        answer, _ = self._ask({"do": "describe"}, [program], "describe a program")
        return {side: answer[side] for side in ("taken", "given")}

    def load(self, name: str, program: bytes) -> None:
        """Load a program's ``forward``; its state lasts until ``forget``."""
        self._ask({"do": "load", "name": name}, [program], "load a program")

    def run(self, name: str, values: Sequence[Value]) -> list[Value]:
        """Execute a loaded program."""
        described = [_described(value) for value in values]
        blobs = [value.data for value in values if isinstance(value, RuntimeTensor)]
        answer, results = self._ask({"do": "run", "name": name, "values": described}, blobs, "run a program")
        left = iter(results)
        return [_value(item, left) for item in answer["values"]]

    def forget(self) -> None:
        """Free every program."""
        self._ask({"do": "forget"}, [], "free programs")

    def end(self) -> None:
        """End the process."""
        if self.owner == os.getpid() and self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait()

    def _ask(self, question: dict[str, Any], blobs: Sequence[bytes], doing: str) -> tuple[dict[str, Any], list[bytes]]:
        assert self.process.stdin
        printed = os.fstat(self.log.fileno()).st_size
        with suppress(BrokenPipeError):
            line = json.dumps({**question, "blobs": [len(blob) for blob in blobs]}).encode() + b"\n"
            self.process.stdin.write(line + b"".join(blobs))
            self.process.stdin.flush()
        answer, results = self._answer(doing, self.seconds, printed)
        if "error" in answer:
            raise RuntimeRefused(answer["error"], self._printed(printed))
        return answer, results

    def _answer(self, doing: str, seconds: float, printed: int = 0) -> tuple[dict[str, Any], list[bytes]]:
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            self._fill(doing, until, printed)
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = bytearray(rest)
        answer: dict[str, Any] = json.loads(line)
        sizes = answer["blobs"]
        while len(self._buffer) < sum(sizes):
            self._fill(doing, until, printed)
        results = []
        for size in sizes:
            results.append(bytes(self._buffer[:size]))
            del self._buffer[:size]
        return answer, results

    def _fill(self, doing: str, until: float, printed: int) -> None:
        assert self.process.stdout
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
        data = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
        if data:
            self._buffer += data
            return
        if ready:
            status = self.process.wait()
            kind = signal.Signals(-status).name if status < 0 else f"exit {status}"
        else:
            kind = "Hang"
        self.end()
        raise RuntimeDied(kind, doing, self._printed(printed))

    def _printed(self, since: int) -> str:
        """The last lines that the process printed since then."""
        size = os.fstat(self.log.fileno()).st_size
        text = os.pread(self.log.fileno(), size - since, since).decode(errors="replace")
        return "\n".join(text.splitlines()[-_LINES:])


def started(
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    script: Path = SERVING,
) -> RuntimeProcess:
    """Start an interpreter with a runtime and wait until it is ready.

    :param folder: where another release of executorch lies (``pip install --no-deps --target``).
    :param environment: variables on top of this process's.
    :param seconds: what one question may take.
    :raises RuntimeDied: it has no executorch, or no runtime; its last lines say which.
    """
    log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as the process
    process = subprocess.Popen(
        (sys.executable, str(script), *([str(folder)] if folder else ())),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
    )
    return _ready(RuntimeProcess(process, log, seconds=seconds))


def forked() -> RuntimeProcess:
    """The installed release's runtime in a fork of this process, which need not import torch again (1 to 2 s).

    :raises RuntimeDied: it has no runtime; its last lines say why.
    """
    log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - likewise
    return _ready(RuntimeProcess(Forked(log), log))


def _ready(runtime: RuntimeProcess) -> RuntimeProcess:
    answer, _ = runtime._answer("start", STARTING)
    runtime.backends = tuple(answer["backends"])
    return runtime


def _described(value: Value) -> dict[str, Any]:
    if isinstance(value, RuntimeTensor):
        return {"dtype": value.dtype, "sizes": value.sizes, "order": value.order}
    return {"value": value}


def _value(item: dict[str, Any], blobs: Any) -> Value:
    if "value" in item:
        held: Value = item["value"]
        return held
    return RuntimeTensor(item["dtype"], tuple(item["sizes"]), tuple(item["order"]), next(blobs))


_running: dict[tuple[int, str], RuntimeProcess] = {}


def running(name: str = "here", start: Callable[[], RuntimeProcess] = forked) -> RuntimeProcess:
    """A runtime of this process (a forked worker has its own), started when first asked for and after it has died."""
    key = os.getpid(), name
    found = _running.get(key)
    if found is None or found.process.poll() is not None:
        found = _running[key] = start()
    return found


def end_running() -> None:
    """End the runtimes of this process, before it ends: nobody would wait for them behind it."""
    for runtime in _running.values():
        runtime.end()
