"""Compile programs with Vela and run them on the TOSA reference model, in children, into a store.

The answer of the reference model counts only with status TOSA_VALID. Where a draw is refused, the
same draw is tried with narrower int32 ranges; what is still refused is counted as such.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from harness.artifacts.tosa import decode_tosa
from tests.children import Death, spread
from tests.exactness.configurations import Configuration
from tests.exactness.program import Array, Program, draw_call
from tests.exactness.store import Call, Compiled, Reference, Store, arrays_of, key_of, stored

DRAWS = 2
NARROWER = (0, 1, 4, 8)
Announce = Callable[[str], None]
Job = tuple[Program, Configuration]
T = TypeVar("T")


def compiled_key(program: Program, configuration: Configuration) -> str:
    return key_of("compiled", program.tosa, *configuration.options)


def reference_key(program: Program) -> str:
    return key_of("reference", program.tosa, program.name, DRAWS, len(program.calls), "int48")


def compile_tosa(tosa: bytes, configuration: Configuration) -> Compiled:
    """Call Vela as ExecuTorch does, on files in a temporary folder."""
    from ethosu.vela import vela

    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "out.tosa")
        file.write_bytes(tosa)
        try:
            vela.main([*configuration.options, f"--output-dir={folder}", str(file)])
            with np.load(Path(folder, "out_vela.npz"), allow_pickle=False) as npz:
                arrays = arrays_of({name: npz[name] for name in npz.files if not name.endswith("quantization")})
        except (RuntimeError, FileNotFoundError) as error:
            return Compiled(refused=" ".join(str(error).split()), seconds=time.perf_counter() - started)
    return Compiled(arrays, "", time.perf_counter() - started)


def prepare(jobs: Sequence[Job], store: Store, workers: int, announce: Announce) -> None:
    """Fill the store with what the jobs need."""
    compilations = [item for item in jobs if compiled_key(*item) not in store]
    programs = {reference_key(program): program for program, _ in jobs}
    references = [program for key, program in programs.items() if key not in store]

    def compile_one(job: Job) -> None:
        store.save(compiled_key(*job), compile_tosa(job[0].tosa, job[1]))

    def not_compiled(job: Job, death: Death) -> None:
        store.save(compiled_key(*job), Compiled(refused=f"Vela died: {death.how}"))

    def refer(program: Program) -> None:
        calls = [_call(program.tosa, arrays) for arrays in program.calls]
        calls += [_drawn(program, number) for number in range(DRAWS) if program.inputs or not program.calls]
        store.save(reference_key(program), Reference(tuple(calls)))

    def not_referred(program: Program, death: Death) -> None:
        store.save(reference_key(program), Reference((Call((), (), f"the reference model died: {death.how}"),)))

    _run(compilations, compile_one, not_compiled, workers, "compiled", announce)
    _run(references, refer, not_referred, workers, "run on the reference model", announce)


def _run(
    items: Sequence[T],
    work: Callable[[T], None],
    dead: Callable[[T, Death], None],
    workers: int,
    verb: str,
    announce: Announce,
) -> None:
    if not items:
        return
    import ethosu.vela.vela  # noqa: F401 - once here, not in every child
    import tosa_reference_model  # noqa: F401

    started = time.monotonic()
    answers = spread(len(items), lambda number: work(items[number]), workers)
    for done, (number, answer) in enumerate(answers, 1):
        if isinstance(answer, Death):
            dead(items[number], answer)
        if done % 200 == 0 or done == len(items):
            announce(f"{done} of {len(items)} {verb}, {time.monotonic() - started:.0f} s")


def _drawn(program: Program, number: int) -> Call:
    """A draw, narrower as long as its result is not defined."""
    call = Call((), (), "not run")
    for narrow in NARROWER:
        call = _call(program.tosa, draw_call(program.name, program.inputs, number, narrow))
        if not call.refused:
            break
    return call


def _call(tosa: bytes, arrays: Sequence[Array]) -> Call:
    from harness.pipeline.legs.tosa_reference import ReferenceModelError, run_flatbuffer

    inputs = tuple(stored(array) for array in arrays)
    try:
        outputs = run_flatbuffer(tosa, arrays)
        if any(output.size == 0 for output in outputs):
            outputs = _by_command(tosa, arrays)
        return Call(inputs, tuple(stored(output) for output in outputs))
    except (ReferenceModelError, ValueError) as error:  # ValueError: the binding's own refusals
        return Call(inputs, (), str(error))


def _by_command(tosa: bytes, arrays: Sequence[Array]) -> list[Array]:
    """The same through the reference model's command and files: the binding returns int48 as an empty array."""
    from harness.pipeline.legs.tosa_reference import ReferenceModelError

    block = decode_tosa(tosa).main
    inputs = [f"in{number}.npy" for number in range(len(block.inputs))]
    results = [f"out{number}.npy" for number in range(len(block.outputs))]
    said = {
        "tosa_file": "graph.tosa", "ifm_name": list(block.inputs), "ifm_file": inputs,
        "ofm_name": list(block.outputs), "ofm_file": results, "expected_failure": False,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "graph.tosa").write_bytes(tosa)
        (folder / "desc.json").write_bytes(msgspec.json.encode(said))
        for name, array in zip(inputs, arrays, strict=True):
            np.save(folder / name, array)
        command = [str(Path(sys.executable).with_name("tosa_reference_model")), f"--test_desc={folder / 'desc.json'}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not all((folder / name).exists() for name in results):
            raise ReferenceModelError(f"tosa_reference_model ends with {done.returncode}: {done.stderr[-200:]}")
        return [np.load(folder / name) for name in results]


@contextlib.contextmanager
def opened(folder: Path | None) -> Iterator[Store]:
    """A store in a folder, or in one that is removed at the end."""
    if folder is not None:
        yield Store(folder)
        return
    with tempfile.TemporaryDirectory(prefix="exactness-") as temporary:
        yield Store(Path(temporary))
