"""``python -m tests.streams.speed``: how long the Ethos-U model takes, on small delegates and on MobileNetV2.

Small delegates are those of generated graphs, int8 and int16 (``tests.exactness.delegates``); they are
lowered once into the cache (``--cache DIR``, minutes) and found there afterwards. Each is decoded from
the bytes of its payload and executed, several times on full-range inputs; its time is the median.
*First* is the first run of a payload in the process, which decodes its weights.

MobileNetV2 (``mobilenet``) is run three times, and its result is compared with the TOSA reference model.

Times are of the clock and of the processor: on a machine that is shared, the second says more. One
thread (``OMP_NUM_THREADS=1``). The target is a median of 20 ms, and seconds for MobileNetV2.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.vela import decode_vela
from harness.ethosu.accelerator import ACCELERATORS
from harness.ethosu.machine import execute
from tests.children import Death, spread
from tests.exactness import delegates
from tests.exactness.configurations import default
from tests.exactness.preparing import compile_tosa, compiled_key, opened
from tests.exactness.program import Array, Program, draw_call, random_state
from tests.exactness.store import Compiled, Store, key_of
from tests.streams.subjects import delegate_bytes

TARGETS = ("ethos-u55-128", "ethos-u85-256")
MOST_MILLISECONDS, MOST_SECONDS = 20.0, 10.0
RUNS = 5
_PERCENTILES = (10, 50, 90, 100)
_PATIENCE = 1800.0


class Network(msgspec.Struct, frozen=True):
    """MobileNetV2 as lowered for one target."""

    tosa: bytes
    payload: bytes


@dataclass(frozen=True)
class Time:
    """Seconds on the clock and of the processor."""

    clock: float
    processor: float


def main() -> int:
    """Parse, lower what is missing, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.streams.speed", description=__doc__)
    parser.add_argument("--targets", default=",".join(TARGETS), help="comma-separated")
    parser.add_argument("--delegates", type=int, default=64, help="small delegates a target; 0 for none")
    parser.add_argument("--no-mobilenet", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes for lowering")
    parser.add_argument("--cache", type=Path, help="folder for lowered and compiled programs, kept")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        announce("OMP_NUM_THREADS is not 1: matrix products may use several threads")
    good = True
    with opened(options.cache) as store:
        for target in options.targets.split(","):
            if options.delegates:
                good &= _small(store, target, options.delegates, options.jobs)
            if not options.no_mobilenet:
                good &= _mobilenet(store, target)
    return 0 if good else 1


def _small(store: Store, target: str, wanted: int, jobs: int) -> bool:
    groups = delegates.programs(store, target, -(-wanted // 2), 0, jobs, announce)
    programs = [program for group in groups for program in group[: -(-wanted // 2)]]
    payloads = list(_compiled(store, target, programs, jobs))
    times = [measured(data, arrays, target) for data, arrays in payloads]
    write(f"{target}: {len(times)} small delegates, milliseconds each")
    write(f"  {'':8}{'':12}" + "".join(f"{'max' if rank == 100 else f'p{rank}':>10}" for rank in _PERCENTILES))
    for place, name in ((0, "first"), (1, "warm")):
        for kind in ("clock", "processor"):
            values = [1e3 * getattr(pair[place], kind) for pair in times]
            ranks = "".join(f"{np.percentile(values, rank):10.2f}" for rank in _PERCENTILES)
            write(f"  {name:8}{kind:12}{ranks}")
    return bool(np.median([1e3 * warm.processor for _, warm in times]) <= MOST_MILLISECONDS)


def _compiled(
    store: Store, target: str, programs: Sequence[Program], jobs: int
) -> Iterator[tuple[bytes, tuple[Array, ...]]]:
    """The payload of every program that Vela accepts, with inputs that fit."""
    configuration = default(target)
    missing = [program for program in programs if compiled_key(program, configuration) not in store]

    def work(place: int) -> None:
        program = missing[place]
        store.save(compiled_key(program, configuration), compile_tosa(program.tosa, configuration))

    for place, answer in spread(len(missing), work, jobs):
        if isinstance(answer, Death):
            announce(f"Vela died on {missing[place].name}: {answer.how}")
    for program in programs:
        compiled = store.load(compiled_key(program, configuration), Compiled)
        if compiled is not None and not compiled.refused:
            payload = payload_of_npz(compiled.payload)
            if len(payload.inputs) == len(program.inputs):
                yield delegate_bytes(payload), draw_call(program.name, program.inputs, 0)


def measured(data: bytes, arrays: Sequence[Array], target: str, runs: int = RUNS) -> tuple[Time, Time]:
    """The first run of a payload, and the median of ``runs`` more."""

    def run() -> None:
        execute(decode_vela(data), arrays, ACCELERATORS[target])

    first = _timed(run)
    later = [_timed(run) for _ in range(runs)]
    clock, processor = (float(np.median([getattr(item, kind) for item in later])) for kind in ("clock", "processor"))
    return first, Time(clock, processor)


def _timed(run: Callable[[], object]) -> Time:
    clock, processor = time.perf_counter(), time.process_time()
    run()
    return Time(time.perf_counter() - clock, time.process_time() - processor)


def _mobilenet(store: Store, target: str) -> bool:
    key = key_of("network", b"", "mobilenet", target)
    if key not in store:
        announce(f"lowering MobileNetV2 for {target}: minutes")
        _in_child(lambda: _lower(store, key, target))
    network = store.load(key, Network)
    assert network is not None
    payload = decode_vela(network.payload)
    (slot,) = payload.inputs
    image = random_state("image").randint(-128, 128, slot.shape).astype(np.int8)
    outputs: list[Array] = []

    def run() -> None:
        execution = execute(decode_vela(network.payload), [image], ACCELERATORS[target])
        outputs[:] = execution.outputs or ()

    sizes = f"{len(payload.weights)} bytes of constants, {len(payload.commands)} of commands"
    write(f"{target}: MobileNetV2, {sizes}, seconds")
    times = [_timed(run) for _ in range(3)]
    for name, item in zip(("first", "second", "third"), times, strict=True):
        write(f"  {name:8} clock {item.clock:.2f}  processor {item.processor:.2f}")
    equal = _in_child(lambda: _equal(network, image, outputs))
    write(f"  {'equal to' if equal else 'DIFFERENT FROM'} the TOSA reference model")
    return bool(equal) and times[0].processor <= MOST_SECONDS


def _in_child(work: Callable[[], Any]) -> Any:
    """The result of what prints, or may take the process with it."""
    ((_, answer),) = spread(1, lambda _: work(), 1, _PATIENCE)
    if isinstance(answer, Death):
        raise RuntimeError(f"the child process ended: {answer.how}")
    return answer


def _lower(store: Store, key: str, target: str) -> None:
    from tests.streams import mobilenet

    store.save(key, Network(*mobilenet.lowered(target)))


def _equal(network: Network, image: Array, outputs: list[Array]) -> bool:
    from harness.artifacts.tosa import decode_tosa
    from harness.pipeline.legs.tosa_reference import run_flatbuffer

    block = decode_tosa(network.tosa).main
    (wanted,) = run_flatbuffer(network.tosa, [image.reshape(block.tensors[block.inputs[0]].shape)])
    return bool(outputs) and np.array_equal(np.asarray(wanted).ravel(), outputs[0].ravel())


def announce(line: str) -> None:
    """Progress goes to standard error."""
    sys.stderr.write(line + "\n")


def write(line: str) -> None:
    """Results go to standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
