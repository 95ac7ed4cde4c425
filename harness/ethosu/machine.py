"""Execute a payload: every command in order, with the checks that only execution can make.

``execute`` runs to the end or to the first command that cannot be executed, and returns what it
found on the way. Execution is sequential: waits and block dependencies have no effect on values,
so a stream that lacks one still computes what its author meant; ``hazards`` looks for those.

Issues found here: accesses outside a region, reads of bytes that nothing wrote, registers that an
operation needs and nobody set, weight and scale streams of a wrong length, outputs that are not
completely written, words after the end of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.artifacts.vela import VelaIO, VelaPayload
from harness.case.arrays import Array
from harness.case.errors import BadInput
from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import Ints
from harness.ethosu.commands import SILENT, decode_commands
from harness.ethosu.convolution import convolution, depthwise
from harness.ethosu.dma import dma
from harness.ethosu.elementwise import elementwise
from harness.ethosu.limits import AN_OPERATION, MOST_REPEATED, MOST_WORK, Budget
from harness.ethosu.memory import SCRATCH_LIMIT, Memory, OutOfBounds
from harness.ethosu.npu import Npu
from harness.ethosu.pooling import pooling
from harness.ethosu.records import LUT, Command, Step, StreamError, StreamIssue, Unimplemented
from harness.ethosu.resize import resize
from harness.ethosu.state import UnsetRegister

Watch = Callable[[Step, Ints | None], None]

_KERNELS: Mapping[str, Callable[[Npu], None]] = {
    "OP_CONV": convolution,
    "OP_DEPTHWISE": depthwise,
    "OP_POOL": pooling,
    "OP_ELEMENTWISE": elementwise,
    "OP_RESIZE": resize,
}
_WAITS = ("OP_DMA_WAIT", "OP_KERNEL_WAIT")


@dataclass(frozen=True)
class Execution:
    """What one run left behind.

    :param outputs: in payload order, six-dimensional; None if the run did not get to its end.
    :param stopped: the error that ended it.
    """

    outputs: tuple[Array, ...] | None
    issues: tuple[StreamIssue, ...]
    steps: tuple[Step, ...]
    stopped: StreamError | None = None


def execute(
    payload: VelaPayload,
    inputs: Sequence[Array],
    accelerator: Accelerator,
    *,
    watch: Watch | None = None,
    commands: Sequence[Command] | None = None,
    most_work: int = MOST_WORK,
) -> Execution:
    """Run a payload on one set of inputs.

    :param inputs: in payload order, with as many elements as the payload says.
    :param watch: called after every operation with its step and the values that it stored, as they
        lie in memory [height, width, depth].
    :param commands: the decoded stream, if the caller has it already.
    :param most_work: multiplications after which the model stops (``limits``).
    :raises BadInput: an input does not fit, or the payload asks for absurd memory.
    :raises StreamError: the stream cannot be decoded.
    """
    asked = payload.scratch_size + payload.fast_scratch_size
    if asked > SCRATCH_LIMIT:
        raise BadInput("Vela payload", f"asks for {asked} bytes of scratch memory", "compile it again")
    decoded = decode_commands(payload.commands, accelerator) if commands is None else commands
    npu = prepared(payload, inputs, accelerator, most_work)
    steps: list[Step] = []
    stopped = _run(npu, decoded, steps, watch)
    if stopped is not None:
        return Execution(None, tuple(npu.issues), tuple(steps), stopped)
    outputs = outputs_of(npu, payload.outputs)
    return Execution(outputs, tuple(npu.issues), tuple(steps))


def prepared(
    payload: VelaPayload, inputs: Sequence[Array], accelerator: Accelerator, most_work: int = MOST_WORK
) -> Npu:
    """The state in which a stream begins, its inputs in memory.

    :raises BadInput: an input does not fit, or lies outside its region.
    """
    memory = Memory(payload.weights, payload.scratch_size, payload.fast_scratch_size, accelerator.lut_memory)
    _place_inputs(memory, payload.inputs, inputs)
    return Npu(accelerator, memory, budget=Budget(most_work))


def _run(npu: Npu, commands: Sequence[Command], steps: list[Step], watch: Watch | None) -> StreamError | None:
    """Execute commands until the stream stops; the error that ended it early, or None."""
    start = commands[0].offset if commands else 0
    places = {command.offset - start: index for index, command in enumerate(commands)}
    at = branched = 0
    while at < len(commands):
        command = commands[at]
        at += 1
        if command.name.startswith("SET_"):
            npu.registers.set(command)
            continue
        if command.name == "OP_STOP":
            return None
        if command.name in SILENT:
            continue
        npu.begin(command)
        try:
            npu.budget.spend(AN_OPERATION)
            if command.name == "OP_BRANCH":
                at = _branch(npu, command, places, at)
                branched = branched or npu.step
            else:
                operate(npu, command)
        except OutOfBounds as error:
            npu.report("out-of-bounds", f"accesses {error}", bricks=int(npu.in_bricks))
            return StreamError(f"accesses {error}", command.offset)
        except UnsetRegister as error:
            npu.report("unset-register", error.problem)
            return StreamError(error.problem, command.offset)
        except StreamError as error:
            return type(error)(error.problem, command.offset)
        except MemoryError:
            return StreamError("needs more memory than there is", command.offset)
        if branched and npu.step - branched > MOST_REPEATED:
            return StreamError(f"{MOST_REPEATED} operations since the first branch: a loop without end", command.offset)
        step = npu.executed()
        steps.append(step)
        if watch is not None:
            watch(step, npu.result)
    npu.issues.append(StreamIssue("no-stop", "the stream ends without STOP"))
    return None


def _branch(npu: Npu, command: Command, places: Mapping[int, int], following: int) -> int:
    """Position of the next command: TARGET counts bytes from the first command.

    RF_TRUE asks whether the operation before stored something other than zero, one element
    (FixupControlFlow in graphir_optimiser.cpp: an operation before the branch sets COND_STATUS).
    """
    if command.fields["condition"]:
        if npu.condition is None:
            raise StreamError("branches on the result of an operation, and none has stored a single element")
        if not npu.condition:
            return following
    target = command.fields["target"]
    if target not in places:
        raise StreamError(f"branches to byte {target:#x} of the stream, where no command begins")
    return places[target]


def operate(npu: Npu, command: Command) -> None:
    """Execute the operation under way.

    :raises StreamError: it cannot be executed.
    :raises OutOfBounds: it leaves a region.
    """
    if command.name in _WAITS:
        return
    if command.name == "OP_DMA_START":
        dma(npu)
        return
    kernel = _KERNELS.get(command.name)
    if kernel is None:
        raise Unimplemented(f"{command.name} is not implemented")
    kernel(npu)
    npu.condition = bool(npu.result.any()) if npu.result is not None and npu.result.size == 1 else None
    if npu.accelerator.shares_tables and not any(item.region == LUT for item in npu.reads):
        npu.memory.forget(LUT)  # without reserved banks the accumulators overwrite the tables


def _place_inputs(memory: Memory, slots: Sequence[VelaIO], inputs: Sequence[Array]) -> None:
    if len(slots) != len(inputs):
        raise BadInput("inputs", f"are {len(inputs)}, the payload has {len(slots)}", "give one array for each")
    for index, (slot, array) in enumerate(zip(slots, inputs, strict=True)):
        memory.write_bytes(_region(slot, f"input {index}", memory), slot.offset, _as_bytes(slot, array, index))


def _region(slot: VelaIO, name: str, memory: Memory) -> int:
    """The region of an input or output, in which it must lie."""
    try:
        size = len(memory.region(slot.region).data)
    except OutOfBounds:
        size = 0
    if slot.region == 0 or slot.end > size:
        where = f"bytes {slot.offset} to {slot.end} of region {slot.region}, which has {size}"
        raise BadInput("Vela payload", f"places {name} at {where}", "compile it again")
    return slot.region


def _as_bytes(slot: VelaIO, array: Array, index: int) -> bytes:
    values = np.ascontiguousarray(array)
    if values.size != slot.elements:
        raise BadInput(
            f"input {index}",
            f"has {values.size} elements (shape {values.shape}), the payload has {slot.elements} (shape {slot.shape})",
            "give an array of the TOSA graph's shape",
        )
    if values.dtype.itemsize != slot.element_size or values.dtype.kind not in "iub":
        raise BadInput(
            f"input {index}",
            f"is {values.dtype}, the payload holds {slot.element_size} bytes an element",
            "give integers of that size",
        )
    return values.tobytes()


def outputs_of(npu: Npu, slots: Sequence[VelaIO]) -> tuple[Array, ...]:
    """What memory holds where the outputs are; bytes that nothing has written are an issue."""
    outputs = []
    for index, slot in enumerate(slots):
        region = _region(slot, f"output {index}", npu.memory)
        data, complete = npu.memory.read_bytes(region, slot.offset, slot.end)
        if not complete:
            found = npu.memory.unwritten(region, [(slot.offset, slot.end)])
            assert found is not None
            missing = f"{found[0]} of {slot.bytes} bytes that nothing has written, from {found[1]:#x} on"
            npu.issues.append(
                StreamIssue("unwritten-output", f"output {index} has {missing}", seen=(("unwritten", 1),))
            )
        outputs.append(np.frombuffer(data, _dtype(slot, index)).reshape(slot.shape))
    return tuple(outputs)


def _dtype(slot: VelaIO, index: int) -> np.dtype[Any]:
    if slot.element_size not in (1, 2, 4, 8):
        raise BadInput(
            "Vela payload", f"says that output {index} has {slot.element_size} bytes an element", "compile it again"
        )
    return np.dtype(f"<i{slot.element_size}")
