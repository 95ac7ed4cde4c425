"""Register values that an operation of Ethos-U85 must not have.

Sources in ethos-u-vela 5.1.0: ethos_u85_register_cs_generator.cpp (its assertions: GenerateBlockConfig,
GenerateOFMPrecision, GenerateAccFormat, GeneratePoolingOp, GenerateElementwiseOp, GenerateResizeOp,
GenerateActivation), ethos_u85_constraints.cpp, ethos_u85.cpp (FindBlockConfig, TryBlockConfig,
SetupOfmUBlockToOpTable). What the search for a block merely prefers is not certain.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import MICROBLOCK_DEPTHS, block_of
from harness.ethosu.pooling import NO_IFM, REDUCE_SUM
from harness.ethosu.records import Step
from harness.ethosu.state import BITS, CHAINED, FROM_IFM2, TRANSPOSITIONS

Broken = Iterator[tuple[str, bool]]

_BLOCK_MAX = (128, 128, 1024)
_ACCUMULATOR_DEPTH, _BRICK = 16, 16
_I48 = 1
_UNARY = frozenset({5, 6, 7, 36})
_REVERSE_CHANNELS = 3
_ACCUMULATOR_BYTES = {128: 8192, 256: 16384, 512: 32768, 1024: 65536, 2048: 131072}
_MICROBLOCKS = {0: (1, 1), 1: (1, 2), 2: (1, 4), 3: (2, 2), 4: (2, 4), 5: (4, 4)}
_USED_MICROBLOCKS = {128: {0, 1}, 256: {1, 2, 3}, 512: {3, 2}, 1024: {3, 2, 4}, 2048: {3, 2, 5}}
_TABLE_COUNT = {1: 8, 4: 8, 5: 4, 7: 2, 8: 1, 9: 1, 10: 1, 11: 1}
"""ACTIVATION function -> tables of its size in 2 KiB."""


def u85_limits(step: Step, accelerator: Accelerator) -> Broken:
    """Broken rules of one kernel step, each with whether it is certain.

    :raises KeyError: a register that the rules need was never set.
    """
    yield from _block(step, accelerator)
    yield from _output(step)
    yield from _accumulators(step, accelerator)
    yield from _operands(step)
    yield from _table(step)
    if step.kind == "RESIZE":
        yield from _resize(step)


def _block(step: Step, accelerator: Accelerator) -> Broken:
    """At most 128x128x1024 as it lies in memory; a brick OFM whose channels were rows or columns has
    blocks of whole bricks there (GenerateBlockConfig). Multiples of the microblock, or of 16 channels
    of a deeper one; 16 channels at most where they are reversed (FindBlockConfig)."""
    block = block_of(step)
    order = TRANSPOSITIONS.get(step.value("OFM_PRECISION", "transpose"))
    if order is None:
        yield f"OFM_PRECISION has transposition {step.value('OFM_PRECISION', 'transpose')}, which is none", True
        return
    moved = [block[axis] for axis in order]
    for axis, size, limit in zip(("height", "width", "depth"), moved, _BLOCK_MAX, strict=True):
        if size > limit:
            yield f"the OFM block in memory has {axis} {size}, more than {limit}", True
    if order[2] != 2 and step.value("OFM_PRECISION", "format") and moved[2] % _BRICK:
        yield f"a transposed NHCWB16 OFM has blocks of {moved[2]} channels, no whole bricks", True
    if step.value("OFM_PRECISION", "reverse") == _REVERSE_CHANNELS and block[2] > _ACCUMULATOR_DEPTH:
        yield f"an OFM with reversed channels has blocks of {block[2]} channels, more than 16", False
    yield from _microblock(block, step.value("ACC_FORMAT", "microblock"), step.kind, accelerator)


def _microblock(block: tuple[int, int, int], code: int, kind: str, accelerator: Accelerator) -> Broken:
    if code not in _USED_MICROBLOCKS[accelerator.macs]:
        yield f"ACC_FORMAT has microblock {code}, which {accelerator.name} has not", True
        return
    deep = min(MICROBLOCK_DEPTHS.get(accelerator.macs, {}).get(code, _ACCUMULATOR_DEPTH), _ACCUMULATOR_DEPTH)
    unit = *_MICROBLOCKS[code], deep
    if kind != "RESIZE" and any(size % part for size, part in zip(block, unit, strict=True)):
        yield f"the OFM block is {'x'.join(map(str, block))}, no multiple of {'x'.join(map(str, unit))}", False


def _output(step: Step) -> Broken:
    """Of chaining, transposition and reversal an OFM has one at most (GenerateOFMPrecision);
    elementwise operations transpose in two ways only and do not reverse (SupportsFusedTranspose,
    SupportsFusedReverse)."""
    storage = step.value("OFM_PRECISION", "storage")
    transpose, reverse = step.value("OFM_PRECISION", "transpose"), step.value("OFM_PRECISION", "reverse")
    if (storage == CHAINED) + bool(transpose) + bool(reverse) > 1:
        yield f"OFM_PRECISION combines storage {storage}, transposition {transpose} and reversal {reverse}", True
    if step.kind == "ELEMENTWISE" and (transpose not in (0, 2, 6) or reverse):
        yield f"an elementwise operation has transposition {transpose} and reversal {reverse}", True
    if step.kind == "RESIZE" and transpose:
        yield f"a RESIZE has transposition {transpose}", True


def _accumulators(step: Step, accelerator: Accelerator) -> Broken:
    """One block of accumulators fits into their RAM (TryBlockConfig, FindDepthwiseConfig);
    REDUCE_SUM has no 48-bit accumulators (GeneratePoolingOp); those that start from IFM2 have its size
    (GenerateAccFormat)."""
    if step.kind in ("ELEMENTWISE", "RESIZE"):
        return
    wide = step.value("ACC_FORMAT", "format") == _I48
    height, width, depth = block_of(step)
    size = height * width * -(-depth // _ACCUMULATOR_DEPTH) * _ACCUMULATOR_DEPTH * (8 if wide else 4)
    if size > _ACCUMULATOR_BYTES[accelerator.macs]:
        yield f"a block needs {size} bytes of accumulators, there are {_ACCUMULATOR_BYTES[accelerator.macs]}", True
    if wide and step.kind == "POOL" and step.command.fields["value"] == REDUCE_SUM:
        yield "REDUCE_SUM has accumulators of 48 bits", True
    if step.value("ACC_FORMAT", "input") == FROM_IFM2:
        bits = BITS[step.value("IFM2_PRECISION", "precision")]
        if bits != (64 if wide else 32):
            yield f"accumulators of {48 if wide else 32} bits start from an IFM2 of {bits} bits", True
    elif step.kind == "POOL" and step.command.fields["value"] == NO_IFM:
        yield "POOL NONE has accumulators that do not start from IFM2", False


def _operands(step: Step) -> Broken:
    """Operands of a binary operation have one precision (GenerateElementwiseOp); weights from IFM2
    have a 1x1 kernel (OperatorQuery) and the IFM's precision (GenerateConvolutionOp)."""
    precision = BITS[step.value("IFM_PRECISION", "precision")]
    mode = step.command.fields.get("value", 0)
    binary = step.kind == "ELEMENTWISE" and mode not in _UNARY
    if binary or (step.kind == "CONV" and mode):
        other = BITS[step.value("IFM2_PRECISION", "precision")]
        if other != precision:
            yield f"IFM has {precision} bits and IFM2 {other}", True
    if step.kind == "CONV" and mode:
        height, width = step.value("KERNEL_HEIGHT_M1") + 1, step.value("KERNEL_WIDTH_M1") + 1
        if (height, width) != (1, 1):
            yield f"a product with IFM2 has a {height}x{width} kernel", True


def _table(step: Step) -> Broken:
    """Table numbers count tables of the function's size (GenerateActivation)."""
    function, table = step.value("ACTIVATION", "function"), step.value("ACTIVATION", "table")
    if function in _TABLE_COUNT and table >= _TABLE_COUNT[function]:
        yield f"ACTIVATION has table {table} of {_TABLE_COUNT[function]} that function {function} can have", True


def _resize(step: Step) -> Broken:
    """The assertions of GenerateResizeOp; blocks of up to 16 channels are what FindBlockConfig allows."""
    for axis in "XY":
        scale, offset = step.value(f"RESIZE_{axis}_SCALE_N_M1") + 1, step.value(f"RESIZE_{axis}_OFFSET")
        if not -scale <= offset < scale:
            yield f"RESIZE_{axis}_OFFSET is {offset}, outside -{scale} to {scale - 1}", True
        if step.value(f"RESIZE_{axis}", "one_step_mod") >= scale:
            yield f"RESIZE_{axis} has a remainder of {step.value(f'RESIZE_{axis}', 'one_step_mod')} of {scale}", True
    height, _, depth = block_of(step)
    if height != 1:
        yield f"a RESIZE has OFM blocks of {height} rows, not 1", True
    if depth > 16:
        yield f"a RESIZE has OFM blocks of {depth} channels, more than 16", False
    if step.value("IFM_UPSCALE"):
        yield f"a RESIZE has IFM_UPSCALE {step.value('IFM_UPSCALE')}", True
    if step.value("IFM2_ZERO_POINT"):
        yield f"a RESIZE has IFM2_ZERO_POINT {step.value('IFM2_ZERO_POINT')}, not 0", True
