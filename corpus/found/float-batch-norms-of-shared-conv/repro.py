"""Two batch norms behind calls of one convolution: the second gets the weights made for the first

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys

import torch
import tosa_reference_model
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p_conv_weight = nn.Parameter(torch.zeros((1, 1, 1, 1), dtype=torch.float32))
        self.p_conv_bias = nn.Parameter(torch.zeros((1,), dtype=torch.float32))
        self.p_one_weight = nn.Parameter(torch.zeros((1,), dtype=torch.float32))
        self.p_one_bias = nn.Parameter(torch.zeros((1,), dtype=torch.float32))
        self.p_two_weight = nn.Parameter(torch.zeros((1,), dtype=torch.float32))
        self.p_two_bias = nn.Parameter(torch.zeros((1,), dtype=torch.float32))
        self.register_buffer('b_one_running_mean', torch.zeros((1,), dtype=torch.float32))
        self.register_buffer('b_one_running_var', torch.zeros((1,), dtype=torch.float32))
        self.register_buffer('b_one_num_batches_tracked', torch.zeros((), dtype=torch.int64))
        self.register_buffer('b_two_running_mean', torch.zeros((1,), dtype=torch.float32))
        self.register_buffer('b_two_running_var', torch.zeros((1,), dtype=torch.float32))
        self.register_buffer('b_two_num_batches_tracked', torch.zeros((), dtype=torch.int64))

    def forward(self, x, y):
        conv2d = torch.ops.aten.conv2d.default(x, self.p_conv_weight, self.p_conv_bias)
        batch_norm = torch.ops.aten.batch_norm.default(conv2d, self.p_one_weight, self.p_one_bias, self.b_one_running_mean, self.b_one_running_var, False, 0.1, 1e-05, False)
        conv2d_1 = torch.ops.aten.conv2d.default(y, self.p_conv_weight, self.p_conv_bias)
        batch_norm_1 = torch.ops.aten.batch_norm.default(conv2d_1, self.p_two_weight, self.p_two_bias, self.b_two_running_mean, self.b_two_running_var, False, 0.1, 1e-05, False)
        return (batch_norm, batch_norm_1)


CALIBRATION = [
    (
        torch.tensor([-0.29050925, -1.0703703, 1.2644587, -0.6874264], dtype=torch.float32).reshape((1, 1, 2, 2)),
        torch.tensor([0.16038126, -0.6064512, -0.7830641, 1.062171], dtype=torch.float32).reshape((1, 1, 2, 2)),
    ),
]
INPUTS = [
    CALIBRATION[0],
]

ALLOWED = 19.94  # float32 epsilons of the largest value that correct rounding may differ by


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


def main():
    model = Model().eval()
    model.p_conv_weight.data.copy_(torch.tensor([-0.00748682], dtype=torch.float32).reshape((1, 1, 1, 1)))
    model.p_conv_bias.data.copy_(torch.tensor([0.5364436], dtype=torch.float32))
    model.p_one_weight.data.copy_(torch.tensor([1.0], dtype=torch.float32))
    model.p_one_bias.data.copy_(torch.tensor([0.0], dtype=torch.float32))
    model.p_two_weight.data.copy_(torch.tensor([1.0], dtype=torch.float32))
    model.p_two_bias.data.copy_(torch.tensor([0.0], dtype=torch.float32))
    model.b_one_running_mean.data.copy_(torch.tensor([0.0], dtype=torch.float32))
    model.b_one_running_var.data.copy_(torch.tensor([1.0], dtype=torch.float32))
    model.b_one_num_batches_tracked.data.copy_(torch.tensor([0], dtype=torch.int64).reshape(()))
    model.b_two_running_mean.data.copy_(torch.tensor([1.0], dtype=torch.float32))
    model.b_two_running_var.data.copy_(torch.tensor([4.0], dtype=torch.float32))
    model.b_two_num_batches_tracked.data.copy_(torch.tensor([0], dtype=torch.int64).reshape(()))
    model.requires_grad_(False)
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+FP"))
    partitioner = TOSAPartitioner(compile_spec)
    exported = torch.export.export(model, CALIBRATION[0])
    edge = to_edge_transform_and_lower(
        exported,
        partitioner=[partitioner],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    worst = 0.0
    for inputs in INPUTS:
        with torch.no_grad():
            expected = model(*inputs)
        actual = run_lowered(edge.exported_program(), inputs)
        expected_values, actual_values = (
            item if isinstance(item, (list, tuple)) else [item] for item in (expected, actual)
        )
        for output in [1]:
            expected, actual = expected_values[output].double(), actual_values[output].double()
            codes = [expected, actual]
            steps = (expected - actual).abs() / (expected.abs().max() * 2.0**-23)
            at = tuple(int(i) for i in torch.nonzero(steps == steps.max())[0])
            for word, row in zip(("expected", "actual  "), codes):
                print(word, "values", row.flatten()[:64].tolist())
            print(f"{int((steps > ALLOWED).sum())} of {steps.numel()} elements of output {output} are too far apart")
            print(f"worst at {list(at)}: expected {float(expected[at]):.6g}, actual {float(actual[at]):.6g}: "
                  f"{float(steps[at]):g} float32 epsilons of the largest value apart, allowed {ALLOWED}")
            worst = max(worst, float(steps[at]))
    print("The bug shows." if worst > ALLOWED else "The bug does not show.")
    return worst > ALLOWED


if __name__ == "__main__":
    sys.exit(main())
