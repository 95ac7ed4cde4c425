"""full_like(x) + y: the delegate reads x in place of y

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import zlib

import numpy as np
import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from tosa.DType import DType
from tosa.TosaGraph import TosaGraph
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x0, x1):
        n0 = torch.full_like(x0, 0.5)
        n1 = n0 + x1
        return n1


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (
        torch.from_numpy(draw('x0', i).uniform(-1.0, 1.0, (1, 4)).astype(np.float32)),
        torch.from_numpy(draw('x1', i).uniform(-1.0, 1.0, (1, 4)).astype(np.float32)),
    )
    for i in range(2)
]


DTYPES = {DType.BOOL: "bool", DType.INT8: "int8", DType.INT16: "int16", DType.INT32: "int32", DType.FP32: "float32"}


def tosa_border(flatbuffer):
    """Dtype and shape of each input and output of a TOSA graph."""
    block = TosaGraph.GetRootAs(flatbuffer).Regions(0).Blocks(0)
    tensors = [block.Tensors(i) for i in range(block.TensorsLength())]
    found = {
        tensor.Name(): (DTYPES.get(tensor.Type(), "other"), [tensor.Shape(i) for i in range(tensor.ShapeLength())])
        for tensor in tensors
    }
    return [
        [found[name(i)] for i in range(count)]
        for name, count in ((block.Inputs, block.InputsLength()), (block.Outputs, block.OutputsLength()))
    ]


def program_border(call):
    """Dtype and shape of what a program calls a delegate with, and of what it takes from it."""
    results = {user.args[1]: user.meta["val"] for user in call.users}
    values = [node.meta["val"] for node in call.args[1:]], [results[i] for i in sorted(results)]
    return [
        [(str(value.dtype).split(".")[1], [int(value.shape[axis]) for axis in value.dim_order()]) for value in side]
        for side in values
    ]


def main():
    model = Model().eval()
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    partitioner = TOSAPartitioner(compile_spec)
    quantizer = TOSAQuantizer(compile_spec)
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
    wrong = False
    final = edge.to_executorch().exported_program()
    for call in final.graph.nodes:
        if call.op != "call_function" or "executorch_call_delegate" not in str(call.target):
            continue
        delegate = getattr(final.graph_module, call.args[0].target)
        for side, program, tosa in zip(("in", "out"), program_border(call), tosa_border(delegate.processed_bytes)):
            print(f"{call.args[0].target} {side}puts: the program has {program}")
            print(f"{call.args[0].target} {side}puts: the TOSA graph has {tosa}")
            wrong = wrong or program != tosa
    print("expected: the same number of values, of the same dtype and shape; the runtime binds them by position")
    print("The bug shows." if wrong else "The bug does not show.")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
