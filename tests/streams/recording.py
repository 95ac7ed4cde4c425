"""Run a payload and note everything that its result depends on, operation by operation.

A *trace* holds for every step which registers the model read and what they said, which elements of
memory it touched, which weights and scale records it decoded, and what it stored. The model is a
function of these and of its inputs, so two streams with equal traces compute the same. Nothing in
the model knows of this: its registers, its memory and its decoders are wrapped while a trace is made.

Where a byte of the constants (region 0) goes is followed through DMA: its *roles* are what kernels
read it as.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from harness.artifacts.vela import VelaPayload
from harness.ethosu import convolution, elementwise, output, state
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.machine import Execution, execute
from harness.ethosu.memory import Memory, Window
from harness.ethosu.records import WEIGHTS, Step
from harness.ethosu.state import MAP_REGISTERS, Registers
from harness.ethosu.weights import ScaleRecords, Weights
from tests.exactness.program import Array

Read = tuple[str, str, int]


@dataclass
class Record:
    """One step.

    :param registers: name, field and value of what was read, in order.
    :param memory: elements and bytes that were touched: what was done, region, window, type.
    :param weights: decoded; ``scales`` and ``tables`` likewise.
    :param operands: of an elementwise operation, scaled.
    :param stored: what it stored, as it lies in memory; None for other operations than kernels.
    """

    step: Step
    registers: tuple[Read, ...]
    memory: tuple[object, ...]
    weights: tuple[Weights, ...]
    scales: tuple[ScaleRecords, ...]
    tables: tuple[NDArray[np.int64], ...]
    operands: tuple[NDArray[np.int64], ...]
    stored: NDArray[np.int64] | None


@dataclass
class Trace:
    """A whole run.

    :param roles: for each byte of region 0, what kernels read it as.
    """

    execution: Execution
    records: list[Record] = field(default_factory=list)
    roles: dict[int, set[str]] = field(default_factory=dict)


def trace(payload: VelaPayload, inputs: tuple[Array, ...], accelerator: Accelerator) -> Trace:
    """Execute and note.

    :raises StreamError: the stream cannot be decoded.
    """
    notes = _Notes(len(payload.weights))
    records: list[Record] = []

    def watch(step: Step, stored: NDArray[np.int64] | None) -> None:
        records.append(notes.take(step, None if stored is None else stored.copy()))

    with _wrapped(notes):
        execution = execute(payload, inputs, accelerator, watch=watch)
    return Trace(execution, records, notes.roles)


class _Notes:
    """What the step under way has done so far, and where constants are."""

    def __init__(self, constants: int) -> None:
        self.registers: list[Read] = []
        self.memory: list[object] = []
        self.weights: list[Weights] = []
        self.scales: list[ScaleRecords] = []
        self.tables: list[NDArray[np.int64]] = []
        self.operands: list[NDArray[np.int64]] = []
        self.roles: dict[int, set[str]] = {}
        self._touched: list[tuple[int, int, int, NDArray[np.int32]]] = []
        self._origins: dict[int, NDArray[np.int32]] = {WEIGHTS: np.arange(constants, dtype=np.int32)}

    def take(self, step: Step, stored: NDArray[np.int64] | None) -> Record:
        notes = (self.registers, self.memory, self.weights, self.scales, self.tables, self.operands)
        record = Record(step, *map(tuple, notes), stored)
        for region, start, end, origins in self._touched:
            roles = {
                item.role for item in step.reads if item.region == region and item.start < end and start < item.end
            }
            for byte in np.unique(origins[origins >= 0]).tolist():
                self.roles.setdefault(byte, set()).update(roles)
        for note in (*notes, self._touched):
            note.clear()
        return record

    def origins(self, region: int, memory: Memory) -> NDArray[np.int32]:
        """For each byte of a region the constant that it is a copy of, or -1."""
        if region not in self._origins:
            self._origins[region] = np.full(len(memory.region(region).data), -1, np.int32)
        return self._origins[region]

    def touch(self, memory: Memory, region: int, window: Window) -> None:
        low, high = window.span
        self._touched.append((region, low, high, _bytes_of(self.origins(region, memory), window).ravel()))


def _bytes_of(origins: NDArray[np.int32], window: Window) -> NDArray[np.int32]:
    strides = (*(4 * stride for stride in window.strides), 4)
    return np.ndarray((*window.shape, window.itemsize), np.int32, origins.data, 4 * window.offset, strides)


def _plain(window: Window) -> Window:
    """The same elements without the strides of axes that have one element."""
    strides = tuple(stride if size > 1 else 0 for size, stride in zip(window.shape, window.strides, strict=True))
    return Window(window.shape, strides, window.offset, window.itemsize)


@contextmanager
def _wrapped(notes: _Notes) -> Iterator[None]:
    with ExitStack() as stack:

        def wrap(owner: Any, name: str, note: Callable[..., None]) -> None:
            original = getattr(owner, name)

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                note(result, *args, **kwargs)
                return result

            stack.enter_context(mock.patch.object(owner, name, wrapper))

        def got(value: int, _: Registers, name: str, field: str = "value") -> None:
            notes.registers.append((name, field, value))

        def got_or(value: int, _: Registers, name: str, default: int, field: str = "value") -> None:
            notes.registers.append((name, field, value))

        def placed(_: object, held: Mapping[str, Mapping[str, int]], role: str, *__: object, **___: object) -> None:
            precision, *others = MAP_REGISTERS[role]
            wanted = [(precision, "precision"), (precision, "type"), *((name, "value") for name in others)]
            notes.registers.extend((name, field, held[name][field]) for name, field in wanted)

        def read(_: object, memory: Memory, region: int, window: Window, dtype: np.dtype[Any]) -> None:
            notes.memory.append(("read", region, _plain(window), dtype.str))
            notes.touch(memory, region, window)

        def write(_: object, memory: Memory, region: int, window: Window, values: Array) -> None:
            notes.memory.append(("write", region, _plain(window), values.dtype.str))
            _bytes_of(notes.origins(region, memory), window)[...] = -1

        def read_bytes(_: object, memory: Memory, region: int, start: int, end: int) -> None:
            notes.memory.append(("bytes", region, start, end))
            notes.touch(memory, region, Window((end - start,), (1,), start, 1))

        def copy(_: object, memory: Memory, source: int, start: int, target: int, at: int, length: int) -> None:
            notes.memory.append(("copy", source, start, target, at, length))
            origins = notes.origins(source, memory)[start : start + length].copy()
            notes.origins(target, memory)[at : at + length] = origins

        def weights(found: Weights, *_: object) -> None:
            notes.weights.append(found)

        def tables(found: NDArray[np.int64], *_: object) -> None:
            notes.tables.append(found)

        def operands(_: object, npu: object, mode: int, first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
            notes.operands.extend((first, second))

        def scales(found: ScaleRecords, *_: object) -> None:
            notes.scales.append(found)

        wrap(Registers, "get", got)
        wrap(Registers, "get_or", got_or)
        wrap(state, "mapped", placed)
        wrap(Memory, "read", read)
        wrap(Memory, "write", write)
        wrap(Memory, "read_bytes", read_bytes)
        wrap(Memory, "copy", copy)
        wrap(convolution, "_weights", weights)
        wrap(convolution, "_scales", scales)
        wrap(output, "lut_table", tables)
        wrap(elementwise, "_apply", operands)
        yield
