"""RESIZE (Ethos-U85): nearest and bilinear, as TOSA defines them.

Along each axis the position of output o is ``o * D + offset`` in units of 1/N of an input step,
N = SCALE_N_M1 + 1 and D = one_step_int * N + one_step_mod. Neighbours beyond the edge are the
edge. The size of the IFM is in the KERNEL registers. The accumulator holds the result shifted left
by 16, which the OFM's shift takes back.

Facts: GenerateResizeOp in ethos_u85_register_cs_generator.cpp; TOSA 1.0, section RESIZE.
"""

from __future__ import annotations

import numpy as np

from harness.ethosu.arithmetic import Ints
from harness.ethosu.limits import AN_ELEMENT, check_elements
from harness.ethosu.npu import Npu
from harness.ethosu.operands import NO_UPSCALE, ofm_shape, operand
from harness.ethosu.output import scaled, store
from harness.ethosu.records import Unimplemented

BILINEAR, REPLICATE, NEAREST = range(3)


def resize(npu: Npu) -> None:
    """RESIZE with the mode of the command."""
    assert npu.command is not None
    registers, mode = npu.registers, npu.command.fields["value"]
    if mode not in (BILINEAR, NEAREST) or registers.get("IFM_UPSCALE") != NO_UPSCALE:
        raise Unimplemented(f"RESIZE mode {mode} with IFM_UPSCALE {registers.get('IFM_UPSCALE')} is not implemented")
    height, width, channels = ofm_shape(npu)
    rows, columns = registers.get("KERNEL_HEIGHT_M1") + 1, registers.get("KERNEL_WIDTH_M1") + 1
    check_elements("a RESIZE halfway", height, columns, channels)
    npu.budget.spend(AN_ELEMENT * height * max(columns, width) * channels)
    ifm = operand(npu, "IFM", (rows, columns, channels))
    top, bottom, down, unit_y = _positions(npu, "Y", height, rows)
    left, right, across, unit_x = _positions(npu, "X", width, columns)
    if mode == NEAREST:
        values = ifm[np.where(2 * down >= unit_y, bottom, top)][:, np.where(2 * across >= unit_x, right, left)]
    else:
        upper = ifm[top] * (unit_y - down)[:, None, None] + ifm[bottom] * down[:, None, None]
        values = upper[:, left] * (unit_x - across)[:, None] + upper[:, right] * across[:, None]
    store(npu, scaled(npu, values << 16, None))


def _positions(npu: Npu, axis: str, count: int, limit: int) -> tuple[Ints, Ints, Ints, int]:
    """Both neighbours of each output, its distance from the first, and the unit of distances."""
    registers = npu.registers
    unit = registers.get(f"RESIZE_{axis}_SCALE_N_M1") + 1
    step = registers.get(f"RESIZE_{axis}", "one_step_int") * unit + registers.get(f"RESIZE_{axis}", "one_step_mod")
    at = np.arange(count, dtype=np.int64) * step + registers.get(f"RESIZE_{axis}_OFFSET")
    first = at // unit
    return np.clip(first, 0, limit - 1), np.clip(first + 1, 0, limit - 1), at - first * unit, unit
