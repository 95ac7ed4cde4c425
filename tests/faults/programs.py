"""Faults in the ``.pte``: what is written behind the Arm backend, seen by running the file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.artifacts.flatbuffer import root_table
from harness.artifacts.program import decode_program
from harness.case.building import module_of
from harness.evidence.references import RUNTIME, RUNTIMES
from tests.faults.fault import Fault, patched
from tests.integration.conftest import linear_case, sigmoid_case

FLOAT_LINEAR = linear_case(recipe="a8w8,float=n0")
_INT32 = 3


@contextmanager
def _rewritten(change: Callable[[bytes], bytes]) -> Iterator[None]:
    """Programs are emitted with other bytes."""
    from executorch.exir.program import ExecutorchProgramManager

    emitted = ExecutorchProgramManager.buffer.fget
    with patched(ExecutorchProgramManager, "buffer", property(lambda self: change(emitted(self)))):
        yield


def _other_weight(data: bytes) -> bytes:
    """One weight of the layer that stays on the CPU is a step of 1/4 larger."""
    weights = next(iter(module_of(FLOAT_LINEAR).state_dict().values())).numpy()
    changed = weights.copy()
    changed[0, 0] += 0.25
    assert data.count(weights.tobytes()) == 1
    return data.replace(weights.tobytes(), changed.tobytes())


def _other_output_dtype(data: bytes) -> bytes:
    """The output is declared int32."""
    output = decode_program(data).main.outputs[0]
    tensor = root_table(data).tables(1)[0].tables(2)[output].table(1)
    assert tensor is not None
    return _with(data, tensor.place(0), "b", _INT32)


def _other_scale(data: bytes) -> bytes:
    """The dequantize of the output has twice the scale."""
    plan = decode_program(data).main
    [last] = [call for call in plan.calls if plan.outputs[0] in call.values]
    held = root_table(data).tables(1)[0].tables(2)[last.values[1]].table(1)
    assert held is not None
    place = held.place(0)
    return _with(data, place, "d", 2 * struct.unpack_from("<d", data, place)[0])


def _with(data: bytes, place: int, code: str, value: float) -> bytes:
    changed = bytearray(data)
    struct.pack_into(f"<{code}", changed, place, value)
    return bytes(changed)


FAULTS = (
    Fault(
        name="program-other-weight",
        stands_for="a constant of a part on the CPU is serialized wrong",
        oracle="numeric",
        kind="outside rounding",
        blame=RUNTIMES[RUNTIME],
        case=FLOAT_LINEAR,
        planted=lambda: _rewritten(_other_weight),
    ),
    Fault(
        name="program-other-scale",
        stands_for="the emitter writes another scale than the edge program has",
        oracle="numeric",
        kind="outside rounding",
        blame=RUNTIMES[RUNTIME],
        case=sigmoid_case(),
        planted=lambda: _rewritten(_other_scale),
    ),
    Fault(
        name="program-other-output-dtype",
        stands_for="the program declares another output dtype than the edge program has",
        oracle="crash",
        kind="exception",
        blame=None,
        case=sigmoid_case(),
        planted=lambda: _rewritten(_other_output_dtype),
    ),
)
