"""Blocks: what each block of an operation writes, and what each of its jobs reads.

The NPU computes an OFM block by block (OFM_BLK_HEIGHT, WIDTH, DEPTH): depth first, then width,
then height. For one block a convolution, matrix product or REDUCE_SUM reads its IFM in slices of
the IFM block's depth, one after the other; every other operation reads in one go what the block
needs. One such reading is a *job*. An operation is a CONV, DEPTHWISE, POOL, ELEMENTWISE or RESIZE
step; those that an OFM in a chain buffer joins (U85) are one *unit*, whose blocks go through all
of them before the next block begins.

Facts (ethos-u-vela 5.1.0): GetJobs, CalcIFMJobShape and CalcOFMJobShape in
ethos_u55_register_cs_generator.cpp and ethos_u85_register_cs_generator.cpp;
get_offset_block_coords and get_first_job_input_volume in register_command_stream_util.py (the
older compiler, which has the real input windows); IFM block depths in FindBlockConfig of
ethos_u55.cpp and ethos_u85.cpp; the other facts as in ``operands`` and ``output``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_ranges import Area, Box, Span
from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.pooling import NO_IFM, REDUCE_SUM
from harness.ethosu.records import LUT, Access, Step
from harness.ethosu.state import BITS, CHAINED, FROM_IFM2, NORMAL, TRANSPOSITIONS, mapped

KERNEL_KINDS = frozenset({"CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "RESIZE"})
NO_ACCUMULATOR_OUTPUT = 1
MICROBLOCK_DEPTHS = {
    128: {1: 8, 0: 16},
    256: {1: 16, 2: 8, 3: 8},
}
"""MACs -> ACC_FORMAT microblock -> depth, where it is not a multiple of 16 or decides the IFM block."""


class Unknown(Exception):
    """The registers do not say how the operation reads or writes; another check reports why."""


@dataclass(frozen=True)
class Window:
    """How an axis of the IFM follows from one of the OFM.

    :param scale: 2 where the IFM is upscaled before the kernel.
    :param step: numerator and denominator of a RESIZE; None otherwise.
    """

    size: int
    stride: int = 1
    reach: int = 1
    before: int = 0
    scale: int = 1
    step: tuple[int, int, int] | None = None

    def reads(self, written: Span) -> Span:
        """Rows or columns that OFM rows or columns are computed from."""
        if self.step is not None:
            numerator, step, offset = self.step
            low = (written.start * step + offset) // numerator
            high = -(-((written.end - 1) * step + offset) // numerator) + 1  # beyond it the weight is zero
            return Span(min(max(low, 0), self.size - 1), max(min(high, self.size), 1))
        low = written.start * self.stride - self.before
        high = (written.end - 1) * self.stride - self.before + self.reach
        return Span(low // self.scale, -(-high // self.scale)).within(0, self.size)


@dataclass(frozen=True)
class Input:
    """An operand in memory and which part of it a block needs.

    :param rows: None where the operand is broadcast, or (weights) does not depend on the row.
    :param channels: ``same`` as the block's, ``all`` of them in slices, or ``one`` (broadcast).
    :param weights: IFM2 of a matrix product: its columns are the block's channels.
    """

    map: FeatureMap
    rows: Window | None
    columns: Window | None
    channels: str = "same"
    weights: bool = False

    def area(self, block: Box, part: Span) -> Area:
        """What a job reads.

        :param part: input channels of the job, where they are read in slices.
        """
        item = self.map
        if self.weights:
            return Area(
                item, Box(Span(0, item.height), block.channels.within(0, item.width), part.within(0, item.depth))
            )
        rows = Span(0, item.height) if self.rows is None else self.rows.reads(block.rows)
        columns = Span(0, item.width) if self.columns is None else self.columns.reads(block.columns)
        channels = {"same": block.channels, "all": part, "one": Span(0, 1)}[self.channels]
        return Area(item, Box(rows, columns, channels.within(0, item.depth)))


@dataclass(frozen=True)
class Operation:
    """A step with its operands and block size.

    :param shape: height, width, depth of what it computes (before a transposition).
    :param slice_depth: input channels of a job; 0 where a block is one job.
    :param ofm: as it lies in memory; None where the result stays inside (chained, accumulators).
    """

    step: Step
    shape: tuple[int, int, int]
    block: tuple[int, int, int]
    inputs: tuple[Input, ...]
    ofm: FeatureMap | None
    input_depth: int = 0
    slice_depth: int = 0
    transpose: tuple[int, int, int] = (0, 1, 2)
    reverse: int = 0

    @property
    def block_counts(self) -> tuple[int, int, int]:
        height, width, depth = (-(-size // part) for size, part in zip(self.shape, self.block, strict=True))
        return height, width, depth

    @property
    def blocks(self) -> int:
        height, width, depth = self.block_counts
        return height * width * depth

    @property
    def slices(self) -> int:
        """Jobs of one block."""
        return -(-self.input_depth // self.slice_depth) if self.slice_depth else 1

    def block_box(self, index: int) -> Box:
        """A block in the coordinates of the computation."""
        _, wide, deep = self.block_counts
        places = (index // (wide * deep), index // deep % wide, index % deep)
        spans = [
            Span(place * part, min((place + 1) * part, size))
            for place, part, size in zip(places, self.block, self.shape, strict=True)
        ]
        return Box(*spans)

    def written(self, index: int) -> Area | None:
        """What a block writes, as it lies in memory."""
        if self.ofm is None:
            return None
        spans = list(self.block_box(index))
        if self.reverse:
            size, span = self.shape[self.reverse - 1], spans[self.reverse - 1]
            spans[self.reverse - 1] = Span(size - span.end, size - span.start)
        return Area(self.ofm, Box(*(spans[axis] for axis in self.transpose)))

    def reads(self, index: int, part: int) -> Iterator[Area]:
        """What a job of a block reads."""
        block = self.block_box(index)
        depth = self.slice_depth or self.input_depth
        channels = Span(part * depth, min((part + 1) * depth, self.input_depth))
        for item in self.inputs:
            area = item.area(block, channels)
            if not area.box.empty and (part == 0 or item.channels == "all" or item.weights):
                yield area


def operation_of(step: Step, accelerator: Accelerator) -> Operation:
    """Operands and blocks from the registers.

    :raises Unknown: a register is missing, or holds what no rule covers.
    """
    try:
        return _u85(step, accelerator) if accelerator.u85 else _u55(step, accelerator)
    except (KeyError, IndexError) as error:
        raise Unknown(f"{error} is missing or unknown") from None


def uses_table(accesses: Iterable[Access]) -> bool:
    """Whether any access is to the table memory."""
    return any(access.region == LUT for access in accesses)


def table_overwrites(reads: Iterable[Access], accelerator: Accelerator) -> tuple[Access, ...]:
    """The table memory, where a kernel overwrites it with its accumulators.

    Ethos-U55-32 and -64 reserve no banks of SHRAM for tables; a kernel that uses none takes them.

    :param reads: of the kernel, or of all kernels of a chain.
    """
    if not accelerator.shares_tables or uses_table(reads):
        return ()
    return (Access("LUT", LUT, 0, accelerator.lut_memory),)


def chained_output(step: Step) -> bool:
    """Whether the OFM goes to a chain buffer, so that the next step is of the same unit."""
    return step.registers.get("OFM_PRECISION", {}).get("storage", NORMAL) == CHAINED


def units(steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    """Kernel steps, those of a chain together."""
    unit: list[Step] = []
    for step in steps:
        if step.kind in KERNEL_KINDS:
            unit.append(step)
            if not chained_output(step):
                yield tuple(unit)
                unit = []
    if unit:
        yield tuple(unit)


def _shape(step: Step) -> tuple[int, int, int]:
    return step.value("OFM_HEIGHT_M1") + 1, step.value("OFM_WIDTH_M1") + 1, step.value("OFM_DEPTH_M1") + 1


def block_of(step: Step) -> tuple[int, int, int]:
    """Height, width, depth of an OFM block."""
    height, width, depth = (step.value(f"OFM_BLK_{axis}_M1") + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    return height, width, depth


def _map(step: Step, role: str, shape: Sequence[int]) -> FeatureMap:
    bricks = bool(step.value(f"{role}_PRECISION", "format"))
    return mapped(step.registers, role, shape, bricks=bricks)


def _windows(step: Step, shape: tuple[int, int, int]) -> tuple[Window, Window]:
    """Rows and columns of the IFM of a convolution or pooling: (OFM - 1) * stride + reach - padding."""
    scale = 2 if step.value("IFM_UPSCALE") else 1
    found = []
    for size, axis, before, after, stride in (
        (shape[0], "HEIGHT", "TOP", "BOTTOM", "stride_y_m1"),
        (shape[1], "WIDTH", "LEFT", "RIGHT", "stride_x_m1"),
    ):
        step_size, reach = step.value("KERNEL_STRIDE", stride) + 1, step.value(f"KERNEL_{axis}_M1") + 1
        pad = step.value(f"IFM_PAD_{before}")
        needed = (size - 1) * step_size + reach - pad - step.value(f"IFM_PAD_{after}")
        if needed < 1:
            raise Unknown("padding is larger than what the kernel covers")
        found.append(Window(-(-needed // scale), step_size, reach, pad, scale))
    return found[0], found[1]


def _windowed(step: Step, shape: tuple[int, int, int], depth: int, channels: str) -> Input:
    rows, columns = _windows(step, shape)
    return Input(_map(step, "IFM", (rows.size, columns.size, depth)), rows, columns, channels)


def _elementwise(step: Step, role: str, shape: tuple[int, int, int], broadcast: int) -> Input:
    """:param broadcast: mask of axes along which one element serves all: H 1, W 2, C 4."""
    height, width, depth = (1 if broadcast >> bit & 1 else size for bit, size in enumerate(shape))
    return Input(
        _map(step, role, (height, width, depth)),
        None if broadcast & 1 else Window(height),
        None if broadcast & 2 else Window(width),
        "one" if broadcast & 4 else "same",
    )


def _u55(step: Step, accelerator: Accelerator) -> Operation:
    shape = _shape(step)
    ofm = _map(step, "OFM", shape)
    if step.kind == "ELEMENTWISE":
        inputs = [_elementwise(step, "IFM", shape, 0)]
        unary = step.command.fields["value"] in (5, 6, 7)  # LRELU, ABS, CLZ
        if not unary and not step.value("IFM2_BROADCAST", "constant"):
            mask = sum(step.value("IFM2_BROADCAST", f"broadcast_{axis}") << bit for bit, axis in enumerate("hwc"))
            inputs.append(_elementwise(step, "IFM2", shape, mask))
        return Operation(step, shape, block_of(step), tuple(inputs), ofm)
    all_channels = step.kind == "CONV" or (step.kind == "POOL" and step.command.fields["value"] == REDUCE_SUM)
    depth = step.value("IFM_DEPTH_M1") + 1 if all_channels else shape[2]
    window = _windowed(step, shape, depth, "all" if all_channels else "same")
    slice_depth = _u55_slice_depth(step, depth, window.map.bits) if all_channels else 0
    return Operation(step, shape, block_of(step), (window,), ofm, depth, slice_depth)


def _u55_slice_depth(step: Step, depth: int, bits: int) -> int:
    """Channels of an IFM block (FindBlockConfig, ethos_u55.cpp)."""
    if bits == 16:
        return -(-min(depth, 16) // 4) * 4
    part_kernel = step.kind == "CONV" and step.value("KERNEL_STRIDE", "weight_order")
    return -(-min(depth, 16 if part_kernel else 32) // 8) * 8


def _u85(step: Step, accelerator: Accelerator) -> Operation:
    shape = _shape(step)
    inputs, depth, all_channels = _u85_inputs(step, shape)
    storage, transpose = (
        step.value("OFM_PRECISION", "storage"),
        TRANSPOSITIONS[step.value("OFM_PRECISION", "transpose")],
    )
    reverse = step.value("OFM_PRECISION", "reverse")
    stored = storage == NORMAL
    ofm = _map(step, "OFM", [shape[axis] for axis in transpose]) if stored else None
    slice_depth = _u85_slice_depth(step, accelerator) if all_channels else 0
    return Operation(step, shape, block_of(step), inputs, ofm, depth, slice_depth, transpose, reverse)


def _u85_inputs(step: Step, shape: tuple[int, int, int]) -> tuple[tuple[Input, ...], int, bool]:
    """Inputs in memory, channels of the IFM, and whether a block reads all of them."""
    if step.kind == "ELEMENTWISE":
        return _u85_elementwise(step, shape), shape[2], False
    found: list[Input] = []
    if step.kind == "RESIZE":
        return (_u85_resize(step, shape),), shape[2], False
    mode = step.command.fields.get("value", 0)
    all_channels = step.kind == "CONV" or (step.kind == "POOL" and mode == REDUCE_SUM)
    depth = step.value("IFM_DEPTH_M1") + 1 if all_channels else shape[2]
    if not (step.kind == "POOL" and mode == NO_IFM) and step.value("IFM_PRECISION", "storage") == NORMAL:
        found.append(_windowed(step, shape, depth, "all" if all_channels else "same"))
    if step.kind == "CONV" and mode:
        found.append(Input(_map(step, "IFM2", (1, shape[2], depth)), None, None, weights=True))
    elif step.value("ACC_FORMAT", "input") == FROM_IFM2:
        found.append(_elementwise(step, "IFM2", shape, 0))
    return tuple(found), depth, all_channels


def _u85_elementwise(step: Step, shape: tuple[int, int, int]) -> tuple[Input, ...]:
    unary = step.command.fields["value"] in (5, 6, 7, 36)  # LRELU, ABS, CLZ, NOT
    found = []
    for role in ("IFM",) if unary else ("IFM", "IFM2"):
        if step.value(f"{role}_PRECISION", "storage") == NORMAL:
            found.append(_elementwise(step, role, shape, step.value(f"{role}_BROADCAST")))
    return tuple(found)


def _u85_resize(step: Step, shape: tuple[int, int, int]) -> Input:
    windows = []
    for axis, letter in (("HEIGHT", "Y"), ("WIDTH", "X")):
        numerator = step.value(f"RESIZE_{letter}_SCALE_N_M1") + 1
        per_step = step.value(f"RESIZE_{letter}", "one_step_int") * numerator
        per_step += step.value(f"RESIZE_{letter}", "one_step_mod")
        size = step.value(f"KERNEL_{axis}_M1") + 1
        windows.append(Window(size, step=(numerator, per_step, step.value(f"RESIZE_{letter}_OFFSET"))))
    rows, columns = windows
    return Input(_map(step, "IFM", (rows.size, columns.size, shape[2])), rows, columns)


def _u85_slice_depth(step: Step, accelerator: Accelerator) -> int:
    """Channels of an IFM block (FindBlockConfig, ethos_u85.cpp)."""
    matrix_product = step.kind == "CONV" and step.command.fields.get("value", 0)
    if step.kind == "CONV" and not matrix_product and step.value("KERNEL_STRIDE", "weight_order"):
        return 16
    bits = BITS[step.value("IFM_PRECISION", "precision")]
    sparse = step.kind == "CONV" and not matrix_product and step.value("WEIGHT_FORMAT", "sparsity")
    microblock = MICROBLOCK_DEPTHS.get(accelerator.macs, {}).get(step.value("ACC_FORMAT", "microblock"), 0)
    if bits == 32 or (microblock == 16 and not sparse):
        return 32
    return 128 if sparse and bits == 8 else 64
