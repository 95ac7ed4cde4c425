"""What one operation does, in a few lines for people: operands, weights, scaling, activation, block.

The lines restate registers and judge nothing. Sizes are height x width x depth. A kernel is
followed by its stride (``s``) and dilation (``d``), height before width, and its padding at the
top, left, bottom and right. Ranges are bytes of a region; where an operand lies in several
pieces, the range is from the first to the last. What the registers do not say (one was never
set, a mode that nobody knows) is said in place of the line.

Weights are decoded where their bytes are known without executing: they are in region 0, or a
one-dimensional DMA copied them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.arithmetic import as_signed
from harness.ethosu.checks.hazard_blocks import KERNEL_KINDS, Unknown, operation_of
from harness.ethosu.commands import field_text
from harness.ethosu.featuremap import FeatureMap
from harness.ethosu.records import LUT, REGION_NAMES, WEIGHTS, Step, StreamError
from harness.ethosu.state import CHAINED, NO_STORAGE, Registers, kernel_of
from harness.ethosu.weight_registers import weight_geometry, weight_ranges
from harness.ethosu.weights import decode_weights

MOST_WEIGHTS = 1 << 24
"""Weights of one operation that are decoded for their statistics."""
_ONE_OPERAND = ("LRELU", "ABS", "CLZ", "NOT")
_GLOBAL = 1


@dataclass
class Constants:
    """Bytes that are known without executing: region 0, and what DMA copied from it.

    :param copies: destination region, start and end there, start in region 0 (or -1 where what was
        copied is not known); later ones hold.
    """

    weights: bytes
    copies: list[tuple[int, int, int, int]] = field(default_factory=list)

    def note(self, registers: Registers) -> None:
        """Remember what DMA_START with these registers copies, if it is one run of bytes."""
        try:
            target, start = registers.get("DMA0_DST_REGION", "region"), registers.get("DMA0_DST")
            length, source = registers.get("DMA0_LEN"), registers.get("DMA0_SRC")
            inside = registers.get("DMA0_DST_REGION", "region_mode")
            known = (
                registers.get("DMA0_SRC_REGION", "region") == WEIGHTS
                and not registers.get("DMA0_SRC_REGION", "region_mode")
                and not _spread(registers)
            )
        except StreamError:
            return
        if not inside:
            self.copies.append((target, start, start + length, source if known else -1))

    def find(self, region: int, start: int, length: int) -> bytes | None:
        """``length`` bytes at ``start`` of a region; None if they are not known."""
        origin = self.origin(region, start, length)
        return None if origin is None else self.weights[origin : origin + length]

    def origin(self, region: int, start: int, length: int) -> int | None:
        """Where in region 0 the bytes are from; None if that is not known."""
        if region == WEIGHTS:
            return start if start + length <= len(self.weights) else None
        for target, first, end, source in reversed(self.copies):
            if target == region and first < start + length and start < end:
                whole = source >= 0 and first <= start and start + length <= end
                return self.origin(WEIGHTS, source + start - first, length) if whole else None
        return None


@dataclass(frozen=True)
class Subject:
    """An operation and what it depends on.

    :param registers: as they are when it is issued.
    """

    step: Step
    registers: Registers
    accelerator: Accelerator
    constants: Constants

    def text(self, register: str, name: str = "value") -> str:
        """A field for people."""
        return field_text(f"SET_{register}", name, self.registers.get(register, name), self.accelerator)


def place(region: int, start: int, end: int) -> str:
    """A range of bytes: ``scratch[0x0:0x800]``."""
    return f"{REGION_NAMES.get(region, f'region {region}')}[{start:#x}:{end:#x}]"


def operation_lines(subject: Subject) -> Iterator[str]:
    """Describe an operation; the first line names it, the others are indented."""
    parts: tuple[Callable[[Subject], Iterator[str]], ...] = ()
    if subject.step.kind == "DMA_START":
        parts = (_copy,)
    elif subject.step.kind in KERNEL_KINDS:
        parts = (_operands, _weights, _scaling, _activation, _block)
    (title,) = _said(_title, subject)
    yield f"step {subject.step.index}: {title}"
    for part in parts:
        yield from ("  " + line for line in _said(part, subject))


def _said(part: Callable[[Subject], Iterator[str]], subject: Subject) -> list[str]:
    try:
        return list(part(subject))
    except (StreamError, Unknown) as error:
        return [f"{part.__name__.strip('_')}: not known: {error}"]


def _title(subject: Subject) -> Iterator[str]:
    step, registers = subject.step, subject.registers
    words = [step.kind]
    if step.kind != "CONV":
        words.extend(_mode(subject))
    elif step.command.fields.get("value"):
        words.append("with weights from IFM2")
    if step.kind in ("CONV", "DEPTHWISE") or (step.kind == "POOL" and "NONE" not in words):
        kernel = kernel_of(registers)
        words.append(f"{kernel.height}x{kernel.width} s{kernel.stride_y}x{kernel.stride_x}")
        words.append(f"d{kernel.dilation_y}x{kernel.dilation_x}")
        words.append(f"pad {kernel.top},{kernel.left},{kernel.bottom},{kernel.right}")
        if step.kind == "CONV":
            words.append("part kernel first" if kernel.part_kernel else "depth first")
        if registers.get("IFM_UPSCALE"):
            words.append(f"IFM upscaled {subject.text('IFM_UPSCALE')}")
    yield " ".join(words)


def _copy(subject: Subject) -> Iterator[str]:
    registers = subject.registers
    length = registers.get("DMA0_LEN")
    for title, name in (("from", "SRC"), ("to", "DST")):
        inside = registers.get(f"DMA0_{name}_REGION", "region_mode")
        region = LUT if inside else registers.get(f"DMA0_{name}_REGION", "region")
        start = registers.get(f"DMA0_{name}")
        if _spread(registers):
            yield f"{title:4} {REGION_NAMES.get(region, f'region {region}')} from {start:#x}{_strides(registers, name)}"
        else:
            yield f"{title:4} {place(region, start, start + length)}"
    if not _spread(registers):
        yield f"{length} bytes"
        return
    mode = max(registers.get_or(f"DMA0_{name}_REGION", 0, "stride_mode") for name in ("SRC", "DST"))
    indexed = any(registers.get_or(f"DMA0_{name}_REGION", 0, "idx_mode") for name in ("SRC", "DST"))
    runs = registers.get("DMA0_SIZE0") if mode or indexed else 1
    rows = registers.get("DMA0_SIZE1") if mode > 1 else 1
    yield f"{rows} x {runs} runs of {length} bytes"
    if indexed:
        start, region = registers.get("DMA0_IDX"), registers.get("DMA0_IDX_REGION")
        yield f"indices at {place(region, start, start + 4 * rows * runs)}, at most {registers.get('DMA0_IDX_MAX')}"


def _spread(registers: Registers) -> bool:
    names = ("DMA0_SRC_REGION", "DMA0_DST_REGION")
    return any(registers.get_or(name, 0, mode) for name in names for mode in ("stride_mode", "idx_mode"))


def _strides(registers: Registers, end: str) -> str:
    """Strides (U85) or skips (U65) of one end of a DMA that are not zero."""
    names = [f"{end}_STRIDE0", f"{end}_STRIDE1", *(("SKIP0", "SKIP1") if end == "DST" else ())]
    found = [(name.removeprefix(f"{end}_"), registers.get_or(f"DMA0_{name}", 0)) for name in names]
    return "".join(f" {name} {stride}" for name, stride in found if stride)


def _operands(subject: Subject) -> Iterator[str]:
    step, registers, u85 = subject.step, subject.registers, subject.accelerator.u85
    operation = operation_of(step, subject.accelerator)
    maps = {item.map.role: item.map for item in operation.inputs}
    two = step.kind == "ELEMENTWISE" and not any(name in _ONE_OPERAND for name in _mode(subject))
    for role in ("IFM", "IFM2"):
        if role in maps:
            yield f"{role:4} {_map_text(maps[role], registers)}"
        elif role == "IFM2" and two and not u85:
            yield f"IFM2 scalar {subject.text('IFM2_SCALAR')} zp {registers.get('IFM2_ZERO_POINT')}"
        elif u85 and (two or role == "IFM") and step.kind != "RESIZE":
            yield from _not_in_memory(subject, role)
    if two and not u85 and registers.get("IFM2_BROADCAST", "operand_order"):
        yield "IFM2 is the first operand"
    if operation.ofm is not None:
        turned = [f"{name} {subject.text('OFM_PRECISION', name)}" for name in ("transpose", "reverse") if u85]
        turned = [text for text in turned if not text.endswith(("HWC", "NONE"))]
        yield " ".join([f"OFM  {_map_text(operation.ofm, registers)}", *turned])
    else:
        yield from _not_in_memory(subject, "OFM")


def _mode(subject: Subject) -> tuple[str, ...]:
    """The fields of the command itself: a mode, or how many may be outstanding."""
    fields = subject.step.command.fields
    return tuple(field_text(subject.step.command.name, name, fields[name], subject.accelerator) for name in fields)


def _not_in_memory(subject: Subject, role: str) -> Iterator[str]:
    registers = subject.registers
    storage = registers.get(f"{role}_PRECISION", "storage")
    kind = f"{_type(subject, role)} zp {registers.get(f'{role}_ZERO_POINT')}"
    if storage == CHAINED:
        buffer = registers.get(f"{role}_REGION")
        yield f"{role:4} chain buffer {buffer}, {kind}"
    elif storage == NO_STORAGE and subject.step.kind == "ELEMENTWISE" and role != "OFM":
        yield f"{role:4} scalar {subject.text('OP_SCALAR')}, {kind}"
    else:
        yield f"{role:4} storage {subject.text(f'{role}_PRECISION', 'storage')}"


def _type(subject: Subject, role: str) -> str:
    sign = "int" if subject.registers.get(f"{role}_PRECISION", "type") else "uint"
    return sign + subject.text(f"{role}_PRECISION", "precision")


def _map_text(item: FeatureMap, registers: Registers) -> str:
    ranges = item.accesses
    kind = f"{'int' if item.signed else 'uint'}{item.bits}"
    words = [kind, f"{item.height}x{item.width}x{item.depth}", "NHCWB16" if item.bricks else "NHWC"]
    words.append(place(item.region, ranges[0].start, ranges[-1].end) if ranges else "nothing")
    if len(ranges) > 1:
        words.append(f"in {len(ranges)} pieces")
    strides = (item.stride_y, item.stride_c) if item.bricks else (item.stride_y, item.stride_x)
    words.append(f"strides {'y,c' if item.bricks else 'y,x'} {strides[0]},{strides[1]}")
    if item.height > item.height0 or item.width > item.width0:
        tiles = f"{item.height0}/{item.height1} rows, {item.width0} columns"
        words.append(f"tiles of {tiles} at " + ",".join(f"{base:#x}" for base in item.bases))
    words.append(f"zp {registers.get(f'{item.role}_ZERO_POINT')}")
    return " ".join(words)


def _weights(subject: Subject) -> Iterator[str]:
    step, registers = subject.step, subject.registers
    if step.kind not in ("CONV", "DEPTHWISE") or step.command.fields.get("value"):
        return
    streams = []
    for region, start, length in weight_ranges(registers, subject.accelerator):
        streams.append(subject.constants.find(region, start, length) if length else b"")
        if length:
            yield f"weights {length} bytes at {place(region, start, start + length)}"
    yield "weights " + _statistics(subject, streams)


def _statistics(subject: Subject, streams: list[bytes | None]) -> str:
    found = [stream for stream in streams if stream is not None]
    if len(found) < len(streams):
        return "not decoded: their bytes are known only when the stream runs"
    depthwise, registers = subject.step.kind == "DEPTHWISE", subject.registers
    depth = 1 if depthwise else registers.get("IFM_DEPTH_M1") + 1
    geometry = weight_geometry(registers, kernel_of(registers), depth, subject.accelerator, depthwise=depthwise)
    shape = "x".join(map(str, geometry.shape))
    if geometry.elements > MOST_WEIGHTS:
        return f"{shape}, not decoded: more than {MOST_WEIGHTS}"
    weights = decode_weights(tuple(found), geometry, subject.accelerator)
    numbers = weights.statistics
    ratio = geometry.elements / max(numbers.compressed_bytes, 1)
    text = (
        f"{shape}: {geometry.elements} of {numbers.elements} in the stream, {ratio:.2f} to a byte, "
        f"{numbers.zeros} zeros, {numbers.minimum} to {numbers.maximum}"
    )
    return "; ".join([text, *(message for _, message in weights.issues)])


def _scaling(subject: Subject) -> Iterator[str]:
    registers, u85 = subject.registers, subject.accelerator.u85
    if subject.step.kind == "ELEMENTWISE":
        yield from _operand_scaling(subject)
    mode = subject.text("OFM_PRECISION", "scale_mode")
    rounding = subject.text("OFM_SCALE", "round_mode") if u85 else subject.text("OFM_PRECISION", "round_mode")
    if registers.get("OFM_PRECISION", "scale_mode") == _GLOBAL:
        shift = registers.get("OFM_SCALE", "shift")
        product = subject.step.kind == "ELEMENTWISE" and "MUL" in _mode(subject)[:1]
        wide = product and subject.text("IFM_PRECISION", "precision") == "32"
        factor = "" if wide else f"{registers.get('OFM_SCALE', 'scale')} "  # not applied to products of 32 bits
        yield f"scale {factor}>> {shift} {rounding}"
    elif subject.step.kind == "ELEMENTWISE":
        yield f"scale none ({mode})"
    else:
        region = registers.get("SCALE_REGION")
        for prefix in ("SCALE", "SCALE1"):
            length = registers.get_or(f"{prefix}_LENGTH", 0)
            if length:
                start = registers.get(f"{prefix}_BASE")
                yield f"scales {length} bytes at {place(region, start, start + length)}, {mode} {rounding}"


def _operand_scaling(subject: Subject) -> Iterator[str]:
    registers = subject.registers
    mode = _mode(subject)[0]
    if not subject.accelerator.u85:
        if mode in ("ADD", "SUB"):
            first = f"OPA {registers.get('OPA_SCALE', 'scale')} >> {registers.get('OPA_SCALE', 'shift')}"
            how = f"{subject.text('IFM_PRECISION', 'scale_mode')} {subject.text('IFM_PRECISION', 'round_mode')}"
            yield f"operands {first}, OPB {registers.get_or('OPB_SCALE', 0)}, {how}"
        return
    for role in ("IFM",) if mode in _ONE_OPERAND else ("IFM", "IFM2"):
        name = f"{role}_SCALE"
        if (scale := registers.get_or(name, -1, "scale")) >= 0:
            yield f"{role} scale {scale} >> {registers.get(name, 'shift')} {subject.text(name, 'round_mode')}"


def _activation(subject: Subject) -> Iterator[str]:
    registers = subject.registers
    low, high = registers.get("ACTIVATION_MIN"), registers.get("ACTIVATION_MAX")
    if registers.get("OFM_PRECISION", "type"):
        low, high = as_signed(low, 16), as_signed(high, 16)
    table = subject.text("ACTIVATION", "function") if registers.get("ACTIVATION", "function") else "no table"
    if subject.accelerator.u85 and registers.get("ACTIVATION", "function"):
        table += f" {registers.get('ACTIVATION', 'table')}"
    clip = f"clip {low} to {high} ({subject.text('ACTIVATION', 'clip_range')})"
    yield f"{clip}, {table}"


def _block(subject: Subject) -> Iterator[str]:
    registers, u85 = subject.registers, subject.accelerator.u85
    height, width, depth = (registers.get(f"OFM_BLK_{axis}_M1") + 1 for axis in ("HEIGHT", "WIDTH", "DEPTH"))
    words = [f"block {height}x{width}x{depth}", f"blockdep {registers.get('BLOCKDEP')}"]
    names = ("format", "input", "output", "microblock") if u85 else ("value",)
    words.append("accumulators " + " ".join(subject.text("ACC_FORMAT", name) for name in names))
    yield ", ".join(words)
