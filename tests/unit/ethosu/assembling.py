"""Command streams by hand: a few lines of registers become a payload that the model executes.

``elementwise``, ``pool`` and others return commands with sensible registers, which keyword
arguments replace: ``IFM_ZERO_POINT=3`` for a register with one field, ``ACTIVATION={"table": 1}``
for fields of another. Feature maps are NHWC, dense, in scratch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.artifacts.vela import VelaIO, VelaPayload
from harness.ethosu.accelerator import Accelerator, accelerator_named
from harness.ethosu.commands import command_table, encode_command

U55, U85 = accelerator_named("ethos-u55-128"), accelerator_named("ethos-u85-256")
Commands = list[tuple[str, dict[str, int]]]
_PRODUCT = {"u55": 0, "u65": 1, "u85": 2}
STOP = ("OP_STOP", {"value": 0xFFFF})


def payload(
    accelerator: Accelerator,
    commands: Iterable[tuple[str, Mapping[str, int]]],
    inputs: Sequence[VelaIO] = (),
    outputs: Sequence[VelaIO] = (),
    weights: bytes = b"",
    scratch: int = 4096,
) -> VelaPayload:
    """A payload whose stream is these commands."""
    words = [word for name, fields in commands for word in encode_command(name, fields, accelerator)]
    config = _PRODUCT[accelerator.family] << 28 | accelerator.macs.bit_length() - 1
    if accelerator.u85:
        config |= 1 << 4 | (accelerator.cores.bit_length() - 1) << 12
    else:
        config |= accelerator.shram_banks * accelerator.cores << 8
    head = [1, config, 0x10060000, len(words) << 16 | 2]
    stream = b"COP1" + b"".join(word.to_bytes(4, "little") for word in head + words)
    return VelaPayload(stream, weights, scratch, tuple(inputs), tuple(outputs))


def io(shape: tuple[int, ...], offset: int, size: int = 1) -> VelaIO:
    """An input or output in scratch."""
    return VelaIO((1,) * (6 - len(shape)) + shape, size, offset, 1)


def registers(accelerator: Accelerator, settings: Mapping[str, Any]) -> Commands:
    """SET commands: numbers for registers of one field, dictionaries for those of several (0 where not given)."""
    specs = {spec.name: spec for spec in command_table(accelerator).values()}
    commands: Commands = []
    for name, value in settings.items():
        fields = {field.name: 0 for field in specs[f"SET_{name}"].fields}
        given = value if isinstance(value, dict) else {"value": value}
        commands.append((f"SET_{name}", {**fields, **given}))
    return commands


def feature_map(
    role: str, shape: tuple[int, int, int], offset: int, size: int = 1, *, signed: bool = True
) -> dict[str, Any]:
    """Registers of a dense NHWC feature map at an offset of scratch."""
    height, width, depth = shape
    return {
        f"{role}_REGION": 1,
        f"{role}_BASE0": offset,
        f"{role}_BASE1": 0,
        f"{role}_BASE2": 0,
        f"{role}_BASE3": 0,
        f"{role}_HEIGHT0_M1": height - 1,
        f"{role}_HEIGHT1_M1": height - 1,
        f"{role}_WIDTH0_M1": width - 1,
        f"{role}_STRIDE_Y": width * depth * size,
        f"{role}_STRIDE_X": depth * size,
        f"{role}_STRIDE_C": size,
        f"{role}_ZERO_POINT": 0,
        f"{role}_PRECISION": {"type": int(signed), "precision": size.bit_length() - 1},
    }


def ofm(accelerator: Accelerator, shape: tuple[int, int, int], offset: int, size: int = 1) -> dict[str, Any]:
    """Registers of the OFM, with a scale of one, the widest clip and no table."""
    height, width, depth = shape
    limit = 8 * min(size, 2)
    low, high = -(1 << limit - 1) & 0xFFFF, (1 << limit - 1) - 1
    found = feature_map("OFM", shape, offset, size)
    found["OFM_PRECISION"] = {**found["OFM_PRECISION"], "scale_mode": 1}
    scale = {"scale": 1, "shift": 0}
    if accelerator.u85:
        scale["round_mode"] = 1
        found["ACC_FORMAT"] = {"microblock": 3}
    else:
        found["OFM_PRECISION"]["round_mode"] = 2
    return {
        **found,
        "OFM_HEIGHT_M1": height - 1,
        "OFM_WIDTH_M1": width - 1,
        "OFM_DEPTH_M1": depth - 1,
        "OFM_SCALE": scale,
        "ACTIVATION": {},
        "ACTIVATION_MIN": low,
        "ACTIVATION_MAX": high,
    }


def kernel(
    height: int = 1, width: int = 1, pads: tuple[int, int, int, int] = (0, 0, 0, 0), **stride: int
) -> dict[str, Any]:
    """Registers of a kernel; ``pads`` are top, left, bottom, right."""
    top, left, bottom, right = pads
    return {
        "KERNEL_HEIGHT_M1": height - 1,
        "KERNEL_WIDTH_M1": width - 1,
        "KERNEL_STRIDE": stride,
        "IFM_PAD_TOP": top,
        "IFM_PAD_LEFT": left,
        "IFM_PAD_BOTTOM": bottom,
        "IFM_PAD_RIGHT": right,
        "IFM_UPSCALE": 0,
    }


def operation(accelerator: Accelerator, name: str, value: int | None, settings: Mapping[str, Any]) -> Commands:
    """Registers, then the command."""
    return [*registers(accelerator, settings), (name, {} if value is None else {"value": value})]
