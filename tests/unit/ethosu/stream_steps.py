"""Steps by hand, for the checks that read a stream: registers and accesses without an execution.

``pool`` makes a 1x1 POOL from ``source`` to ``target``; keyword arguments replace registers:
``BLOCKDEP=2``, or ``KERNEL_STRIDE={"stride_y_m1": 1}`` for fields of another. Other kinds are made
from it. Feature maps are dense NHWC in scratch unless a ``Map`` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from harness.ethosu.accelerator import Accelerator, accelerator_named
from harness.ethosu.checks.hazard_blocks import operation_of
from harness.ethosu.records import LUT, SCRATCH, WEIGHTS, Access, Command, Step

U55, U85 = accelerator_named("ethos-u55-128"), accelerator_named("ethos-u85-256")
SMALL, DUAL = accelerator_named("ethos-u55-32"), accelerator_named("ethos-u65-512")

AVERAGE, REDUCE_SUM, SUM = 1, 2, 3


@dataclass(frozen=True)
class Map:
    """A feature map in scratch.

    :param strides: y and x in bytes; dense where None.
    """

    base: int
    shape: tuple[int, int, int]
    bits: int = 8
    strides: tuple[int, int] | None = None
    bricks: bool = False
    region: int = SCRATCH

    def registers(self, role: str) -> dict[str, Any]:
        height, width, depth = self.shape
        size = self.bits // 8
        stride_y, stride_x = self.strides or (width * depth * size, depth * size)
        if self.bricks:
            stride_x, stride_y = 16 * size, width * -(-depth // 16) * 16 * size
        return {
            f"{role}_REGION": self.region,
            f"{role}_BASE0": self.base,
            **{f"{role}_BASE{tile}": 0 for tile in (1, 2, 3)},
            f"{role}_HEIGHT0_M1": height - 1,
            f"{role}_HEIGHT1_M1": height - 1,
            f"{role}_WIDTH0_M1": width - 1,
            f"{role}_STRIDE_Y": stride_y,
            f"{role}_STRIDE_X": stride_x,
            f"{role}_STRIDE_C": width * 16 * size if self.bricks else size,
            f"{role}_ZERO_POINT": 0,
            f"{role}_PRECISION": {"type": 1, "precision": size.bit_length() - 1, "format": int(self.bricks)},
        }


def command(name: str, **fields: int) -> Command:
    return Command(0, (0,), f"OP_{name}", fields)


def _fields(value: Any) -> dict[str, int]:
    return value if isinstance(value, dict) else {"value": value}


def kernel(
    kind: str,
    accelerator: Accelerator,
    source: Map,
    target: Map,
    *,
    block: tuple[int, int, int],
    second: Map | None = None,
    value: int | None = None,
    extra: tuple[Access, ...] = (),
    **settings: Any,
) -> Step:
    """A kernel step.

    :param second: IFM2.
    :param extra: reads beside the feature maps.
    :param settings: registers that replace the usual ones; a dictionary adds fields to them.
    """
    height, width, depth = target.shape
    registers: dict[str, Any] = {
        **source.registers("IFM"),
        **target.registers("OFM"),
        "IFM_DEPTH_M1": source.shape[2] - 1,
        "OFM_HEIGHT_M1": height - 1,
        "OFM_WIDTH_M1": width - 1,
        "OFM_DEPTH_M1": depth - 1,
        **{f"OFM_BLK_{axis}_M1": size - 1 for axis, size in zip(("HEIGHT", "WIDTH", "DEPTH"), block, strict=True)},
        "KERNEL_HEIGHT_M1": 0,
        "KERNEL_WIDTH_M1": 0,
        "KERNEL_STRIDE": {"stride_x_m1": 0, "stride_y_m1": 0, "weight_order": 0, "dilation_x": 0, "dilation_y": 0},
        **{f"IFM_PAD_{side}": 0 for side in ("TOP", "LEFT", "BOTTOM", "RIGHT")},
        "IFM_UPSCALE": 0,
        "ACTIVATION": {"function": 0, "table": 0, "clip_range": 0},
        "BLOCKDEP": 0,
        **(_u85() if accelerator.u85 else _u55(accelerator, kind)),
    }
    if second is not None:
        registers |= second.registers("IFM2")
    for role in ("IFM", "IFM2", "OFM"):
        if accelerator.u85 and f"{role}_PRECISION" in registers:
            registers[f"{role}_PRECISION"] |= {"storage": 0, "reverse": 0, "transpose": 0}
    for name, given in settings.items():
        registers[name] = {**_fields(registers.get(name, {})), **given} if isinstance(given, dict) else given
    held = {name: _fields(fields) for name, fields in registers.items()}
    step = Step(0, command(kind, **({} if value is None else {"value": value})), held)
    operation = operation_of(step, accelerator)
    reads = tuple(access for item in operation.inputs for access in item.map.accesses)
    writes = operation.ofm.accesses if operation.ofm is not None else ()
    return replace(step, reads=reads + extra, writes=writes)


def _u55(accelerator: Accelerator, kind: str) -> dict[str, Any]:
    end = accelerator.shram_banks - (2 if accelerator.shram_banks > 16 else 0)
    start = end if kind == "ELEMENTWISE" else end - (16 if accelerator.shram_banks == 48 else 8)
    return {
        "IFM_IB_END": start,
        "AB_START": start,
        "IFM2_IB_START": 2 + (start - 2) // 2,
        "ACC_FORMAT": 0,
        "IFM2_BROADCAST": {"broadcast_h": 0, "broadcast_w": 0, "broadcast_c": 0, "constant": 0},
    }


def _u85() -> dict[str, Any]:
    return {
        "ACC_FORMAT": {"format": 0, "input": 0, "output": 0, "microblock": 3},
        "IFM_BROADCAST": 0,
        "IFM2_BROADCAST": 0,
        "WEIGHT_FORMAT": {"format": 0, "sparsity": 0},
    }


def pool(source: Map, target: Map, accelerator: Accelerator = U55, **more: Any) -> Step:
    """A POOL that copies; blocks of 2x8x8 unless given."""
    more.setdefault("block", (2, 8, 8) if not accelerator.u85 else (2, 8, 16))
    more.setdefault("value", SUM if accelerator.u85 else AVERAGE)
    return kernel("POOL", accelerator, source, target, **more)


def elementwise(source: Map, target: Map, accelerator: Accelerator = U55, *, second: Map, **more: Any) -> Step:
    """An ADD; blocks of 2x8x8 unless given."""
    more.setdefault("block", (2, 8, 8) if not accelerator.u85 else (2, 8, 16))
    more.setdefault("value", 1)
    return kernel("ELEMENTWISE", accelerator, source, target, second=second, **more)


def copy(source: int, target: int, length: int, *, region: int = WEIGHTS, table: bool = False, **settings: Any) -> Step:
    """A DMA of one run into scratch, or into the table memory."""
    destination = LUT if table else SCRATCH
    registers = {
        "DMA0_SRC": source,
        "DMA0_DST": target,
        "DMA0_LEN": length,
        "DMA0_SRC_REGION": {"region": region, "region_mode": 0, "stride_mode": 0},
        "DMA0_DST_REGION": {"region": SCRATCH, "region_mode": int(table), "stride_mode": 0},
        **settings,
    }
    return Step(
        0,
        command("DMA_START"),
        {name: _fields(value) for name, value in registers.items()},
        (Access("SOURCE", region, source, source + length),),
        (Access("DESTINATION", destination, target, target + length),),
    )


def wait(kind: str, count: int) -> Step:
    """KERNEL_WAIT or DMA_WAIT."""
    return Step(0, command(f"{kind}_WAIT", value=count), {})


def stream(*steps: Step) -> list[Step]:
    """Steps with their numbers."""
    return [replace(step, index=index) for index, step in enumerate(steps)]


def table_of(accelerator: Accelerator, size: int = 256) -> Access:
    """The first table, as a read."""
    start = 0 if accelerator.u85 else accelerator.lut_memory - 2048
    return Access("LUT", LUT, start, start + size)
