"""Register values that an operation must not have, as far as public sources say so.

Each rule cites where it comes from (ethos-u-vela 5.1.0; "older compiler" is the Python under
``vela/``, the other files are those of regor). A rule is certain if the source states it as a
condition of the hardware: an assertion of the command stream generator, an error that the older
compiler raises, or an operator that the constraints call unsupported. What a source merely never
does is not certain.

This file has the rules for feature maps, streams, kernels and DMA; ``shram`` has those for
the SHRAM of Ethos-U55 and U65, ``u85`` those for Ethos-U85.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.ethosu.accelerator import Accelerator
from harness.ethosu.checks.hazard_blocks import KERNEL_KINDS, Unknown
from harness.ethosu.checks.shram import shram_limits
from harness.ethosu.checks.u85 import u85_limits
from harness.ethosu.pooling import REDUCE_SUM
from harness.ethosu.records import Step, StreamIssue
from harness.ethosu.state import BITS

Broken = Iterator[tuple[str, bool]]
"""Messages of broken rules, and whether they are certain."""

_MAX_POOL, _AVERAGE = 0, 1
_I40 = 1
_CLZ, _SHL = 7, 9
_BINARY_U55 = frozenset({0, 1, 2, 3, 4, 8, 9})
_TABLE_SLOTS = {8: 1, 32: 4, 16: 8}
"""OFM bits -> slots of 256 bytes that a table takes (Ethos-U55 and U65)."""


def register_limits(step: Step, accelerator: Accelerator) -> list[StreamIssue]:
    """Rules that the registers of one step break.

    :returns: issues of kind ``register-limit``; a step with missing registers is left to the machine.
    """
    found: list[StreamIssue] = []
    for message, certain in _broken(step, accelerator):
        found.append(StreamIssue("register-limit", message, step.kind, step.index, step.command.offset, certain))
    return found


def _broken(step: Step, accelerator: Accelerator) -> Broken:
    if step.kind == "DMA_START":
        rules = [_dma_alignment]
    elif step.kind in KERNEL_KINDS:
        rules = [_feature_maps, _streams, _kernel, u85_limits if accelerator.u85 else _u55]
        if not accelerator.u85:
            rules.append(shram_limits)
    else:
        return
    for rule in rules:
        try:
            yield from rule(step, accelerator)
        except (KeyError, Unknown):
            continue  # a register that nobody set, or a value without a meaning: the machine reports it


def _roles(step: Step) -> list[str]:
    """The operands that are in memory."""
    return sorted({access.role for access in (*step.reads, *step.writes)} & {"IFM", "IFM2", "OFM"})


def _feature_maps(step: Step, accelerator: Accelerator) -> Broken:
    """Alignment of addresses and strides.

    NHCWB16: base addresses are multiples of 16 (CheckAddresses and GetTiles in both command stream
    generators), strides of rows and bricks too (check_strides of the older compiler, so certain on
    Ethos-U55 and U65). NHWC: multiples of the element size (check_addresses, check_strides).
    """
    for role in _roles(step):
        size = BITS[step.value(f"{role}_PRECISION", "precision")] // 8
        bricks = bool(step.value(f"{role}_PRECISION", "format"))
        needed = 16 if bricks else size
        for tile in range(4):
            base = step.value(f"{role}_BASE{tile}")
            if base % needed:
                yield f"{role}_BASE{tile} is {base:#x}, no multiple of {needed}", bricks or not accelerator.u85
        for axis in ("Y", "C") if bricks else ("Y", "X"):
            stride = step.value(f"{role}_STRIDE_{axis}")
            if stride % needed:
                yield f"{role}_STRIDE_{axis} is {stride}, no multiple of {needed}", not accelerator.u85


def _streams(step: Step, accelerator: Accelerator) -> Broken:
    """Weight streams begin and end at multiples of 16 bytes (generate_weights; GenerateWeights of
    Ethos-U85 asserts the address), scale streams end there (generate_biases); that they begin there
    is what the compilers do."""
    roles = {access.role for access in step.reads}
    for role, count in (("WEIGHT", accelerator.cores), ("SCALE", 1 if accelerator.u85 else accelerator.cores)):
        if role not in roles:
            continue
        for core in range(count):
            prefix = f"{role}{core or ''}"
            length = step.value(f"{prefix}_LENGTH")
            if length % 16:
                yield f"{prefix}_LENGTH is {length}, no multiple of 16", not accelerator.u85
            if length and step.value(f"{prefix}_BASE") % 16:
                yield f"{prefix}_BASE is {step.value(f'{prefix}_BASE'):#x}, no multiple of 16", role == "WEIGHT"


def _kernel(step: Step, accelerator: Accelerator) -> Broken:
    """Strides of at most 3 (OperatorQuery in both constraints), padded averages of at most 8x8
    (the same), no reach beyond 64 rows or 64*64 taps (dilated_height_range, dilated_product_range of
    the older compiler, which is about TFLite operators)."""
    if step.kind not in ("CONV", "DEPTHWISE", "POOL"):
        return
    height, width = step.value("KERNEL_HEIGHT_M1") + 1, step.value("KERNEL_WIDTH_M1") + 1
    strides = step.value("KERNEL_STRIDE", "stride_y_m1") + 1, step.value("KERNEL_STRIDE", "stride_x_m1") + 1
    if max(strides) > 3:
        yield f"the strides are {strides[0]}x{strides[1]}, more than 3", True
    pads = {side: step.value(f"IFM_PAD_{side}") for side in ("TOP", "BOTTOM", "LEFT", "RIGHT")}
    average = step.kind == "POOL" and step.command.fields["value"] == _AVERAGE
    if average and any(pads.values()) and max(height, width) > 8:
        yield f"an AVERAGE with padding has a {height}x{width} kernel, larger than 8x8", True
    if height > 64 or height * width > 64 * 64:
        yield f"the kernel reaches over {height}x{width}, more than 64 rows or 4096 taps", False


def _u55(step: Step, accelerator: Accelerator) -> Broken:
    """Ethos-U55 and U65: data types.

    Operands of a binary operation have one precision (GenerateElementwiseOp). REDUCE_SUM of int32
    wants NHWC (generate_pooling_op of the older compiler, scheduler.cpp) and no accumulators of 40
    bits (GeneratePoolingOp); on Ethos-U65-512 the older compiler refuses any NHCWB16 there, the newer
    one emits it. Zero points are 0 for 32-bit IFMs and for CLZ and SHL (SupportedZeroPoint). Tables are
    aligned to their size (lut.py). An OFM that is reversed by negative strides is NHWC (GenerateOFM).
    """
    mode = step.command.fields.get("value", 0)
    precision = BITS[step.value("IFM_PRECISION", "precision")]
    if step.kind == "POOL" and mode == REDUCE_SUM:
        if step.value("IFM_PRECISION", "format") and (precision == 32 or accelerator.cores > 1):
            yield f"REDUCE_SUM has an NHCWB16 IFM of {precision} bits", precision == 32
        if precision == 32 and step.value("ACC_FORMAT") == _I40:
            yield "REDUCE_SUM of 32 bits has accumulators of 40 bits", True
    elementwise = step.kind == "ELEMENTWISE"
    if elementwise and mode in _BINARY_U55:
        other = BITS[step.value("IFM2_PRECISION", "precision")]
        if other != precision:
            yield f"IFM has {precision} bits and IFM2 {other}", True
    if step.value("IFM_ZERO_POINT") and (precision == 32 or (elementwise and mode in (_CLZ, _SHL))):
        yield f"IFM_ZERO_POINT is {step.value('IFM_ZERO_POINT')}, which this operation does not support", True
    table = step.value("ACTIVATION", "function") - 16
    slots = _TABLE_SLOTS.get(BITS[step.value("OFM_PRECISION", "precision")], 1)
    if table >= 0 and table % slots:
        yield f"ACTIVATION uses TABLE_{table} for a table of {slots} slots", True
    if step.value("OFM_PRECISION", "format") and min(step.value("OFM_STRIDE_Y"), step.value("OFM_STRIDE_X")) < 0:
        yield "an NHCWB16 OFM has a negative stride", True


def _dma_alignment(step: Step, accelerator: Accelerator) -> Broken:
    """Ethos-U55: source, destination and length are multiples of 16. Ethos-U65: only addresses in
    SHRAM, and the length of a copy into it (check_dma_op of the older compiler). Nothing is known of
    Ethos-U85."""
    if accelerator.u85:
        return
    everywhere = accelerator.family == "u55"
    into_shram = bool(step.value("DMA0_DST_REGION", "region_mode"))
    checked = {
        "DMA0_SRC": everywhere or bool(step.value("DMA0_SRC_REGION", "region_mode")),
        "DMA0_DST": everywhere or into_shram,
        "DMA0_LEN": everywhere or into_shram,
    }
    for name, applies in checked.items():
        if applies and step.value(name) % 16:
            yield f"{name} is {step.value(name):#x}, no multiple of 16", True
