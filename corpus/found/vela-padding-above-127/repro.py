"""Vela writes padding of 128 rows or more into registers of seven bits

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not. 3: it needs an Ethos-U to show.
"""

import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
import tosa_reference_model
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x0):
        n0 = torch.cumsum(x0, dim=1)
        return n0


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (torch.from_numpy(draw('x0', i).uniform(-1.0, 1.0, (1, 129)).astype(np.float32)),)
    for i in range(1)
]


def compiled(flatbuffer, name, flags):
    """Write a TOSA graph and compile it with Vela: what Vela wrote (None if it failed), and what it said."""
    Path(f"{name}.tosa").write_bytes(flatbuffer)
    command = ["vela", *flags, f"--output-dir={name}_vela", f"{name}.tosa"]
    print("$", *command, flush=True)
    vela = subprocess.run([sys.executable, "-m", "ethosu.vela", *command[1:]], capture_output=True, text=True)
    said = vela.stdout + vela.stderr
    if vela.returncode:
        print("expected: Vela compiles the graph")
        print(f"actual:   exit status {vela.returncode}:", *said.strip().splitlines()[-6:], sep="\n  ")
        return None, said
    for line in said.splitlines():
        if "out of bounds" in line:
            print("Vela says:", line.strip())
    return np.load(Path(f"{name}_vela", f"{name}_vela.npz")), said


KINDS = {DType.BOOL: np.bool_, DType.INT8: np.int8, DType.INT16: np.int16, DType.INT32: np.int32}


def some_inputs(block):
    """Integers from the whole range for each input of a TOSA graph."""
    rng = np.random.default_rng(0)
    tensors = {block.Tensors(i).Name(): block.Tensors(i) for i in range(block.TensorsLength())}
    for i in range(block.InputsLength()):
        tensor = tensors[block.Inputs(i)]
        kind, shape = KINDS[tensor.Type()], [tensor.Shape(k) for k in range(tensor.ShapeLength())]
        low, high = (0, 1) if kind is np.bool_ else (np.iinfo(kind).min, np.iinfo(kind).max)
        yield rng.integers(low, high, shape, endpoint=True).astype(kind)


def main():
    model = Model().eval()
    compile_spec = EthosUCompileSpec("ethos-u85-256")
    # up to the TOSA graph that Vela is given
    partitioner = TOSAPartitioner(TosaCompileSpec(compile_spec.tosa_spec))
    quantizer = EthosUQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    graph = torch.export.export(model, CALIBRATION[0]).module(check_guards=False)
    prepared = prepare_pt2e(graph, quantizer)
    for sample in CALIBRATION:
        prepared(*sample)
    quantized = convert_pt2e(prepared)
    exported = torch.export.export(quantized, CALIBRATION[0])
    edge = to_edge_transform_and_lower(
        exported,
        partitioner=[partitioner],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    for node in edge.exported_program().graph.nodes:
        if node.op != "get_attr":
            continue
        flatbuffer = getattr(edge.exported_program().graph_module, node.target).processed_bytes
        block = TosaGraph.GetRootAs(flatbuffer).Regions(0).Blocks(0)
        made, said = compiled(flatbuffer, node.target, compile_spec.compiler_flags)
        if made is None:
            return 2
        inputs = [*some_inputs(block)]
        expected, status = tosa_reference_model.run(flatbuffer, inputs, initialize_variable_tensor_from_numpy=1)
        print(f"TOSA reference model: {status.name}, first values {[array.flatten()[:16].tolist() for array in expected]}")
        named = {f"{word}_{i}": array for word, row in (("in", inputs), ("out", expected)) for i, array in enumerate(row)}
        np.savez(f"{node.target}_io.npz", **named)
    print("What is wrong shows where the command stream is executed, on an Ethos-U or a model of it.")
    return 3


if __name__ == "__main__":
    sys.exit(main())
