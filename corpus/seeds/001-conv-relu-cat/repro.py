"""a conv whose relu keeps its own domain (zp != qmin)

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import math
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('p_conv1_weight', torch.zeros((4, 4, 3, 3), dtype=torch.float32))
        self.register_buffer('p_conv1_bias', torch.zeros((4,), dtype=torch.float32))
        self.register_buffer('p_conv2_weight', torch.zeros((4, 8, 1, 1), dtype=torch.float32))
        self.register_buffer('p_conv2_bias', torch.zeros((4,), dtype=torch.float32))

    def forward(self, x, y):
        conv2d = torch.ops.aten.conv2d.default(x, self.p_conv1_weight, self.p_conv1_bias, [1, 1], [1, 1])
        relu = torch.ops.aten.relu.default(conv2d)
        cat = torch.ops.aten.cat.default([relu, y], 1)
        conv2d_1 = torch.ops.aten.conv2d.default(cat, self.p_conv2_weight, self.p_conv2_bias)
        return conv2d_1


def ends(name, low, high, shape, seed=0):
    """Values at both ends of a range."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return np.where(rng.integers(0, 2, math.prod(shape)) == 0, low, high).reshape(shape)


VALUES = np.load(Path(__file__).with_name("values.npz"))
CALIBRATION = [
    (torch.from_numpy(VALUES['sample.0.x']), torch.from_numpy(VALUES['sample.0.y'])),
]
INPUTS = [
    (
        torch.from_numpy(ends('x', 7.969141e-05, 0.9998382, (1, 4, 16, 16)).astype(np.float32)),
        torch.from_numpy(ends('y', -0.064569175, 0.9341093, (1, 4, 16, 16)).astype(np.float32)),
    ),
]

ALLOWED = 1  # steps (units of the last place) that correct rounding may differ by


def to_memory(tensor, like):
    return tensor.permute(like.dim_order()).contiguous().numpy()


def from_memory(array, like, index):
    order = like.dim_order()
    tensor = torch.from_numpy(array).reshape([like.shape[axis] for axis in order])
    if tensor.dtype != like.dtype:
        raise RuntimeError(
            f"delegate output {index} is {tensor.dtype} in the TOSA graph and {like.dtype} in the parent graph: "
            f"{tensor.nbytes} bytes are written where {tensor.numel() * like.element_size()} are allocated"
        )
    return tensor.permute([order.index(axis) for axis in range(len(order))])


class OnReferenceModel(torch.fx.Interpreter):
    """Runs a lowered program: delegates on the TOSA reference model, everything else in eager."""

    def call_function(self, target, args, kwargs):
        if "executorch_call_delegate" not in str(target):
            return super().call_function(target, args, kwargs)
        delegate, *tensors = args
        nodes = delegate.original_module.graph.nodes
        names = delegate.original_module.graph_signature.user_inputs
        formal = [node.meta["val"] for node in nodes if node.op == "placeholder" and node.name in names]
        arrays = [to_memory(tensor, like) for tensor, like in zip(tensors, formal)]
        outputs, status = tosa_reference_model.run(
            delegate.processed_bytes, arrays, initialize_variable_tensor_from_numpy=1
        )
        if status != tosa_reference_model.GraphStatus.TOSA_VALID:
            raise RuntimeError(f"the TOSA reference model returned {status.name}, not TOSA_VALID")
        promised = [node.meta["val"] for node in delegate.original_module.graph.output_node().args[0]]
        return [from_memory(array, like, i) for i, (array, like) in enumerate(zip(outputs, promised))]


def run_lowered(program, inputs):
    held, user = {**program.state_dict, **program.constants}, iter(inputs)
    specs = program.graph_signature.input_specs
    arguments = [held[spec.target] if spec.target in held else next(user) for spec in specs]
    with torch.no_grad():
        return OnReferenceModel(program.graph_module).run(*arguments, enable_io_processing=False)


def domain(graph_module, output):
    """Scale and zero point of an output."""
    node = graph_module.graph.output_node().args[0]
    node = node[output] if isinstance(node, (list, tuple)) else node
    while "dequantize_per_tensor" not in str(node.target):
        node = node.args[0]
    return node.args[1:3]


def main():
    model = Model().eval()
    model.p_conv1_weight.data.copy_(torch.from_numpy(VALUES['p_conv1_weight']))
    model.p_conv1_bias.data.copy_(torch.tensor([0.04670142, -0.048647966, -0.08286884, -0.08599211], dtype=torch.float32))
    model.p_conv2_weight.data.copy_(torch.tensor([0.09976097, 0.06347894, -0.06912338, 0.03912426, 0.07551676, 0.09996148, 0.08743949, 0.077475384, -0.022925926, -0.035094168, 0.082104884, 0.056037962, -0.0601779, 0.08990172, 0.04831586, 0.05451355, -0.06267764, 0.02868998, -0.035056245, 0.07813566, -0.01799406, 0.03893125, 0.017762184, 0.04254682, -0.033982754, 0.048757136, -0.0698471, 0.0225855, -0.06765919, -0.098653756, -0.08030558, 0.07894701], dtype=torch.float32).reshape((4, 8, 1, 1)))
    model.p_conv2_bias.data.copy_(torch.tensor([0.054103564, 0.09382158, 0.08011212, -0.089304544], dtype=torch.float32))
    model.requires_grad_(False)
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT+FP"))
    partitioner = TOSAPartitioner(compile_spec)
    quantizer = TOSAQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True, act_qmin=-127, act_qmax=127))
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
    worst = 0.0
    for inputs in INPUTS:
        with torch.no_grad():
            expected = quantized(*inputs)
        actual = run_lowered(edge.exported_program(), inputs)
        expected_values, actual_values = (
            item if isinstance(item, (list, tuple)) else [item] for item in (expected, actual)
        )
        for output in [0]:
            expected, actual = expected_values[output].double(), actual_values[output].double()
            scale, zero_point = domain(quantized, output)
            codes = [torch.round(values / scale).long() + zero_point for values in (expected, actual)]
            steps = (expected - actual).abs() / scale
            at = tuple(int(i) for i in torch.nonzero(steps == steps.max())[0])
            for word, row in zip(("expected", "actual  "), codes):
                print(word, "codes", row.flatten()[:64].tolist())
            print(f"{int((steps > ALLOWED).sum())} of {steps.numel()} elements of output {output} are too far apart")
            print(f"worst at {list(at)}: expected {float(expected[at]):.6g}, actual {float(actual[at]):.6g}: "
                  f"{float(steps[at]):g} steps (units of the last place) apart, allowed {ALLOWED}")
            worst = max(worst, float(steps[at]))
    print("The bug shows." if worst > ALLOWED else "The bug does not show.")
    return worst > ALLOWED


if __name__ == "__main__":
    sys.exit(main())
