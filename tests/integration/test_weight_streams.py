"""Weights and scales of real Vela streams against the constants of the TOSA graph that was compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import tosa_serializer as ts
from ethosu.vela import vela

from harness.artifacts.npz import payload_of_npz
from harness.artifacts.vela import VelaPayload
from harness.compat.vela import default_configuration
from harness.ethosu.accelerator import ACCELERATORS
from harness.ethosu.commands import decode_commands
from harness.ethosu.weights import ScaleRecords, WeightGeometry, Weights, decode_scales, decode_weights
from tests.exactness.building import Graph, multiplier_of, rescale, zero

Registers = Mapping[str, Mapping[str, int]]

SHAPES = {  # kernel rows, kernel columns, IFM channels, OFM channels, strides, dilation
    "part kernel": (3, 3, 3, 33, (2, 1), (1, 1)),
    "depth first": (1, 1, 130, 70, (1, 1), (1, 1)),
    "dilated": (5, 3, 17, 5, (1, 1), (2, 2)),
    "wide kernel": (1, 9, 8, 16, (1, 3), (1, 1)),
    "depthwise": (3, 3, 40, 40, (2, 2), (1, 1)),
}


def weights_of(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(kind))
    if kind == "few values":
        return rng.choice([-9, 0, 4, 100], shape)
    if kind == "mostly zeros":
        return rng.integers(-127, 128, shape) * (rng.random(shape) < 0.1)
    if kind == "two of four":
        ranks = np.argsort(rng.random((*shape[:-1], -(-shape[-1] // 4), 4)), -1).reshape(*shape[:-1], -1)
        return rng.integers(-127, 128, shape) * (ranks[..., : shape[-1]] < 2)
    return rng.integers(-127, 128, shape)


def graph(name: str, kind: str, bits: int) -> tuple[bytes, np.ndarray, list[tuple[int, int]]]:
    """TOSA of one convolution; its weights [OFM channel, row, column, IFM channel], multipliers and shifts."""
    rows, columns, ifm, ofm, stride, dilation = SHAPES[name]
    depthwise = name == "depthwise"
    weights = weights_of(kind, (rows, columns, ifm, 1) if depthwise else (ofm, rows, columns, ifm))
    built, dtype, accumulator = Graph(), f"INT{bits}", "INT32" if bits == 8 else "INT48"
    height, width = ((5 - 1) * stride[i] + ((rows, columns)[i] - 1) * dilation[i] + 1 for i in (0, 1))
    inputs = [
        built.input((1, height, width, ifm), dtype),
        built.const(weights, "INT8"),
        built.const(np.arange(ofm) * 1000 - 7, accumulator),
        zero(built, dtype),
        zero(built, "INT8"),
    ]
    op = "DEPTHWISE_CONV2D" if depthwise else "CONV2D"
    sums = built.add(
        op, inputs, (1, 5, 5, ofm), accumulator, pad=[0] * 4, stride=list(stride), dilation=list(dilation),
        local_bound=False, acc_type=ts.DType.__members__[accumulator],
    )  # fmt: skip
    factors = [0.0001 * (channel + 1) for channel in range(ofm)]
    program = built.finish(name, rescale(built, sums, dtype, factors))
    if depthwise:
        weights = weights.transpose(2, 0, 1, 3)
    return program.tosa, weights, [multiplier_of(factor, bits == 8) for factor in factors]


def compiled(tosa: bytes, target: str, folder: Path) -> VelaPayload:
    system, memory = default_configuration(target).system_config, "Sram_Only"
    (folder / "out.tosa").write_bytes(tosa)
    options = f"--accelerator-config={target} --output-format=raw --debug-force-regor --config=Arm/vela.ini"
    where = f"--system-config={system} --memory-mode={memory} --output-dir={folder}"
    vela.main([*options.split(), *where.split(), str(folder / "out.tosa")])
    with np.load(folder / "out_vela.npz") as arrays:
        return payload_of_npz({name: arrays[name] for name in arrays.files if "quant" not in name})


def operations(payload: VelaPayload, target: str) -> Iterator[tuple[str, Registers]]:
    registers: dict[str, Mapping[str, int]] = {}
    for command in decode_commands(payload.commands, ACCELERATORS[target]):
        if command.name.startswith("SET_"):
            registers[command.name.removeprefix("SET_")] = command.fields
        elif command.name in ("OP_CONV", "OP_DEPTHWISE"):
            yield command.name, registers


def decoded(payload: VelaPayload, target: str, operation: str, registers: Registers) -> tuple[Weights, ScaleRecords]:
    accelerator, u85 = ACCELERATORS[target], ACCELERATORS[target].u85
    stride = registers["KERNEL_STRIDE"]
    dilation = [stride["dilation_y"] + 1, stride["dilation_x"] + 1]
    taps = [registers[f"KERNEL_{axis}_M1"]["value"] // dilation[i] + 1 for i, axis in enumerate(("HEIGHT", "WIDTH"))]
    geometry = WeightGeometry(
        ofm_depth=registers["OFM_DEPTH_M1"]["value"] + 1,
        ifm_depth=registers["IFM_DEPTH_M1"]["value"] + 1,
        kernel_height=taps[0],
        kernel_width=taps[1],
        dilation_y=dilation[0],
        dilation_x=dilation[1],
        stride_y=stride["stride_y_m1"] + 1,
        stride_x=stride["stride_x_m1"] + 1,
        depthwise=operation == "OP_DEPTHWISE",
        part_kernel=bool(stride["weight_order"]),
        ofm_block_depth=registers["OFM_BLK_DEPTH_M1"]["value"] + 1,
        ifm_bits=8 << registers["IFM_PRECISION"]["precision"],
        fast=u85 and bool(registers["WEIGHT_FORMAT"]["format"]),
        sparse=u85 and bool(registers["WEIGHT_FORMAT"]["sparsity"]),
        microblock=registers["ACC_FORMAT"]["microblock"] if u85 else 0,
    )

    def streams(what: str, count: int) -> tuple[bytes, ...]:
        found = []
        for core in range(count):
            length = registers[f"{what}{core or ''}_LENGTH"]["value"]
            start = registers[f"{what}{core or ''}_BASE"]["value"] if length else 0
            found.append(payload.weights[start : start + length])
        return tuple(found)

    assert registers["WEIGHT_REGION"]["value"] == registers["SCALE_REGION"]["value"] == 0
    acc_bits = 48 if u85 and registers["ACC_FORMAT"]["format"] else 32
    microblock = geometry.microblock if u85 else None
    weights = decode_weights(streams("WEIGHT", accelerator.cores), geometry, accelerator)
    records = streams("SCALE", 1 if u85 else accelerator.cores)
    return weights, decode_scales(records, geometry.ofm_depth, accelerator, acc_bits, microblock)


CASES = [
    ("ethos-u55-32", "part kernel", "uniform", 8),
    ("ethos-u55-64", "dilated", "mostly zeros", 16),
    ("ethos-u55-128", "depth first", "few values", 8),
    ("ethos-u55-128", "depthwise", "uniform", 16),
    ("ethos-u55-256", "wide kernel", "uniform", 8),
    ("ethos-u65-256", "dilated", "uniform", 8),
    ("ethos-u65-512", "part kernel", "few values", 16),
    ("ethos-u65-512", "depth first", "uniform", 8),
    ("ethos-u65-512", "depthwise", "mostly zeros", 8),
    ("ethos-u85-128", "depth first", "uniform", 16),
    ("ethos-u85-128", "part kernel", "uniform", 8),
    ("ethos-u85-256", "wide kernel", "two of four", 8),
    ("ethos-u85-256", "depthwise", "uniform", 8),
    ("ethos-u85-512", "depth first", "few values", 8),
    ("ethos-u85-512", "depthwise", "uniform", 16),
    ("ethos-u85-1024", "part kernel", "mostly zeros", 8),
    ("ethos-u85-1024", "dilated", "uniform", 16),
    ("ethos-u85-1024", "depth first", "few values", 8),
    ("ethos-u85-2048", "depth first", "uniform", 16),
    ("ethos-u85-2048", "depthwise", "uniform", 8),
]
FAST, SPARSE = {"format": 1, "sparsity": 0}, {"format": 0, "sparsity": 1}
FORMATS = {
    ("ethos-u85-512", "depth first"): FAST,
    ("ethos-u85-1024", "depth first"): FAST,
    ("ethos-u85-256", "wide kernel"): SPARSE,
}


@pytest.mark.parametrize(("target", "name", "kind", "bits"), CASES)
def test_decoded_constants_are_those_of_the_graph(target: str, name: str, kind: str, bits: int, tmp_path: Path) -> None:
    tosa, weights, factors = graph(name, kind, bits)
    payload = compiled(tosa, target, tmp_path)
    done = 0
    for operation, registers in operations(payload, target):
        if (target, name) in FORMATS:
            assert registers["WEIGHT_FORMAT"] == FORMATS[target, name]
        found, scales = decoded(payload, target, operation, registers)
        depth = len(scales.bias)
        assert found.issues == scales.issues == ()
        assert np.array_equal(found.values, weights[done : done + depth])
        assert scales.bias.tolist() == (np.arange(done, done + depth) * 1000 - 7).tolist()
        expected = [multiplier / 2.0**shift for multiplier, shift in factors[done : done + depth]]
        assert (scales.scale / 2.0**scales.shift).tolist() == expected
        done += depth
    assert done == len(weights)
