"""AVG_POOL2D's zero points are quantized a second time

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from tosa.Op import Op
from tosa.TosaGraph import TosaGraph
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x):
        n0 = F.avg_pool2d(x, (2, 2), stride=(2, 2), padding=(0, 0), ceil_mode=False, count_include_pad=True)
        return n0


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (torch.from_numpy(draw('x', i).uniform(-1.0, 2.0, (1, 2, 4, 4)).astype(np.float32)),)
    for i in range(2)
]


def zero_points(flatbuffer):
    """Zero points that the operators of a TOSA graph take as operands: (operator, values)."""
    block = TosaGraph.GetRootAs(flatbuffer).Regions(0).Blocks(0)
    tensors = {}
    for i in range(block.TensorsLength()):
        tensors[block.Tensors(i).Name()] = block.Tensors(i)
    kinds = {value: name for name, value in vars(Op).items() if isinstance(value, int)}
    for i in range(block.OperatorsLength()):
        operator = block.Operators(i)
        names = [operator.Inputs(k) for k in range(operator.InputsLength())][PLACES.get(kinds[operator.Op()], slice(0))]
        held = [tensors[name] for name in names if not tensors[name].DataIsNone()]
        if held:
            yield kinds[operator.Op()], [int(tensor.DataAsNumpy().view(np.int8)[0]) for tensor in held]


PLACES = {"AVG_POOL2D": slice(1, 3), "NEGATE": slice(1, 3), "MATMUL": slice(2, 4), "CONV2D": slice(3, 4)}


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
    decided = {0}
    for node in quantized.graph.nodes:
        if "quantize_per_tensor" in str(node.target):
            print(f"{node.name}: scale {node.args[1]}, zero point {node.args[2]}")
            decided.add(node.args[2])
    wrong = False
    for node in edge.exported_program().graph.nodes:
        if node.op != "get_attr":
            continue
        delegate = getattr(edge.exported_program().graph_module, node.target)
        for operator, values in zero_points(delegate.processed_bytes):
            print(f"TOSA {operator}: zero points {values}; the quantized graph has none but {sorted(decided)}")
            wrong = wrong or not decided.issuperset(values)
    print("The bug shows." if wrong else "The bug does not show.")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
