"""Plants in Vela's payload: registers, waits, constants and addresses, changed before the delegate gets them.

Vela keeps no register from one delegate to the next, and sets one only where its value changes. ``at_operations``
therefore writes the changed value before each operation that it is about, and the right one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from harness.artifacts.tosa import decode_tosa
from harness.ethosu.accelerator import Accelerator
from tests.faults.planted import VELA, Drawn, Plant
from tests.faults.streams import Commands, compiled, emitted, without

CONV, DEPTHWISE, POOL, ELEMENTWISE = "OP_CONV", "OP_DEPTHWISE", "OP_POOL", "OP_ELEMENTWISE"
CONVOLUTIONS = (CONV, DEPTHWISE)
OPERATIONS = (*CONVOLUTIONS, POOL, ELEMENTWISE)
Stream = Callable[[Commands, Accelerator], Commands]
Registers = dict[str, dict[str, int]]
Where = Callable[[str, Registers, str], bool]
"""Takes an operation, the registers that are set, and the operation before it."""

NUMERIC, STREAM = "numeric/differs from the TOSA reference", "stream"
U55_ELEMENTWISE = Drawn("ethos-u55-128", 30, 5)
MEASURED = Drawn("ethos-u55-128", 4242, 40)
U55, U55_TABLES, U85 = Drawn("ethos-u55-128", 2, 3), Drawn("ethos-u55-128", 3, 3), Drawn("ethos-u85-256", 2, 3)


def at_operations(operations: Collection[str], register: str, field: str, change: Callable[[int], int]) -> Stream:
    """Some operations run with another value in a register."""
    return where_it_holds(lambda operation, held, before: operation in operations, register, field, change)


def where_it_holds(where: Where, register: str, field: str, change: Callable[[int], int]) -> Stream:
    """Operations of which something holds run with another value in a register."""

    def changed(commands: Commands, accelerator: Accelerator) -> Commands:
        found: Commands = []
        held: Registers = {}
        before = ""
        for name, fields in commands:
            if name.startswith("SET_"):
                held[name] = fields
            right = held.get(register)
            if name in OPERATIONS and right is not None and where(name, held, before):
                wrong = {**right, field: change(right[field])}
                found += [(register, wrong), (name, fields), (register, right)]
            else:
                found.append((name, fields))
            before = name if name in OPERATIONS else before
        return found

    return changed


def _lowered(value: int) -> int:
    """The 16 bits of a signed bound, one lower."""
    return value - 1 & 0xFFFF


def _raised(value: int) -> int:
    return value + 8 & 0xFFFF


def _twice(commands: Commands, accelerator: Accelerator) -> Commands:
    """Convolutions are emitted once more."""
    return [item for item in commands for _ in range(2 if item[0] in CONVOLUTIONS else 1)]


def _last_output_elsewhere(commands: Commands, accelerator: Accelerator) -> Commands:
    """The last output begins sixteen bytes too late."""
    places = [place for place, (name, _) in enumerate(commands) if name == "SET_OFM_BASE0"]
    return [
        (name, {"value": fields["value"] + 16} if places and place == places[-1] else fields)
        for place, (name, fields) in enumerate(commands)
    ]


def _constant_changed(ops: Collection[str], operand: int) -> Callable[[bytes], bytes]:
    """In the TOSA graph that Vela gets, the element in the middle of a constant has its second lowest bits flipped."""

    def changed(flatbuffer: bytes) -> bytes:
        data = bytearray(flatbuffer)
        block = decode_tosa(flatbuffer).main
        for operator in block.operators:
            if operator.op in ops:
                start, end = block.tensors[operator.inputs[operand]].span
                if end > start:
                    data[(start + end) // 2] ^= 0x18
        return bytes(data)

    return changed


def _plant(
    name: str,
    stands_for: str,
    shows: str | tuple[str, ...],
    change: Stream,
    drawn: Drawn = U55,
    here: tuple[str, ...] = (),
) -> Plant:
    kinds = (shows,) if isinstance(shows, str) else shows
    return Plant(name, stands_for, kinds, VELA, drawn, emitted(change), here)


def _constant(name: str, stands_for: str, ops: tuple[str, ...], drawn: Drawn, here: str) -> Plant:
    return Plant(
        name, stands_for, (NUMERIC,), VELA, drawn, compiled(lambda payload: payload, _constant_changed(ops, 1)), (here,)
    )


PLANTS = (
    _plant(
        "conv-ofm-zero-point",
        "measured: the OFM zero point of convolutions plus one (all ten findings were called known)",
        NUMERIC,
        at_operations(CONVOLUTIONS, "SET_OFM_ZERO_POINT", "value", lambda value: value + 1),
        MEASURED,
    ),
    _plant(
        "u85-activation-max",
        "measured: ACTIVATION_MAX lowered by one on Ethos-U85 (3 of 3 were called known)",
        NUMERIC,
        at_operations(OPERATIONS, "SET_ACTIVATION_MAX", "value", _lowered),
        U85,
    ),
    _plant(
        "elementwise-ofm-zero-point",
        "measured: the OFM zero point of ELEMENTWISE plus one (9 of 16 cases were called known)",
        NUMERIC,
        at_operations((ELEMENTWISE,), "SET_OFM_ZERO_POINT", "value", lambda value: value + 1),
        here=("RESCALE", "NEGATE"),
    ),
    _plant(
        "elementwise-ifm2-zero-point",
        "the second operand's zero point is one too large",
        NUMERIC,
        at_operations((ELEMENTWISE,), "SET_IFM2_ZERO_POINT", "value", lambda value: value + 1),
        U55_ELEMENTWISE,
        here=("RESCALE",),
    ),
    _plant(
        "conv-ifm-zero-point",
        "the zero point of a convolution's input is one too large",
        NUMERIC,
        at_operations(CONVOLUTIONS, "SET_IFM_ZERO_POINT", "value", lambda value: value + 1),
        here=("RESCALE",),
    ),
    _plant(
        "activation-min",
        "a clamp's lower bound is eight codes too high",
        NUMERIC,
        at_operations(OPERATIONS, "SET_ACTIVATION_MIN", "value", _raised),
    ),
    _plant(
        "pad-top-lost",
        "padding above the input is lost: the window begins a row too low",
        (NUMERIC, STREAM),
        at_operations(CONVOLUTIONS, "SET_IFM_PAD_TOP", "value", lambda value: max(0, value - 1)),
        here=("RESCALE",),
    ),
    _plant(
        "kernel-stride",
        "a kernel steps over every other column, or over none",
        (NUMERIC, STREAM),
        at_operations((*CONVOLUTIONS, POOL), "SET_KERNEL_STRIDE", "stride_x_m1", lambda value: value ^ 1),
    ),
    _plant(
        "output-scale",
        "the scale of an elementwise output is off by 1/64",
        NUMERIC,
        at_operations((ELEMENTWISE,), "SET_OFM_SCALE", "scale", lambda value: value + (value >> 6)),
        U55_ELEMENTWISE,
        here=("RESCALE",),
    ),
    _constant("table-entry", "one entry of a table is wrong", ("TABLE",), Drawn("ethos-u55-128", 101, 2), "TABLE"),
    _constant("weight", "one weight is wrong", ("CONV2D", "DEPTHWISE_CONV2D"), U55, "RESCALE"),
    _plant(
        "ofm-depth",
        "the last channel is not written",
        STREAM,
        at_operations((POOL, ELEMENTWISE), "SET_OFM_DEPTH_M1", "value", lambda value: max(0, value - 1)),
    ),
    _plant("output-address", "an output begins in the wrong place", STREAM, _last_output_elsewhere),
    _plant(
        "blockdep",
        "an operation starts before the one that it depends on is done",
        "stream/hazard",
        at_operations(OPERATIONS, "SET_BLOCKDEP", "value", lambda value: 3),
    ),
    _plant(
        "dma-wait-lost",
        "a table is read while DMA still writes it",
        "stream/hazard",
        without("OP_DMA_WAIT"),
        U55_TABLES,
    ),
    _plant(
        "kernel-wait-lost",
        "DMA writes what a kernel still reads",
        "stream/hazard",
        without("OP_KERNEL_WAIT"),
        Drawn("ethos-u55-128", 100, 3),
    ),
    _plant("u85-emitted-twice", "a convolution does its work twice", "stream/duplicate", _twice, U85),
)
