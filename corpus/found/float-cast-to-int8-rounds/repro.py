"""A cast of a float to int8 or int16 rounds where PyTorch drops the fraction

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys

import numpy as np
import torch
import tosa_reference_model
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn


class Model(nn.Module):
    def forward(self, x0):
        n0 = x0.clamp(-100.0, 100.0).to(torch.int8)
        return n0


CALIBRATION = [
    (torch.from_numpy(np.linspace(-2.75, 2.75, 4).reshape((1, 4)).astype(np.float32)),)
    for i in range(1)
]
INPUTS = [
    CALIBRATION[0],
]

ALLOWED = 0.0  # units that correct rounding may differ by


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
        for output in [0]:
            expected, actual = expected_values[output].double(), actual_values[output].double()
            codes = [expected, actual]
            steps = (expected - actual).abs()
            at = tuple(int(i) for i in torch.nonzero(steps == steps.max())[0])
            for word, row in zip(("expected", "actual  "), codes):
                print(word, "values", row.flatten()[:64].tolist())
            print(f"{int((steps > ALLOWED).sum())} of {steps.numel()} elements of output {output} are too far apart")
            print(f"worst at {list(at)}: expected {float(expected[at]):.6g}, actual {float(actual[at]):.6g}: "
                  f"{float(steps[at]):g} units apart, allowed {ALLOWED}")
            worst = max(worst, float(steps[at]))
    print("The bug shows." if worst > ALLOWED else "The bug does not show.")
    return worst > ALLOWED


if __name__ == "__main__":
    sys.exit(main())
