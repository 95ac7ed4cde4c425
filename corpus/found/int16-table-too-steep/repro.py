"""a16w8: a TABLE of a logarithm has neighbours further apart than TOSA allows

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import traceback

import torch
import tosa_reference_model
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_a16w8_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x0):
        n5 = torch.log10(x0.clamp(min=0.05))
        return n5


CALIBRATION = [
    (torch.tensor([1000.0], dtype=torch.float32).reshape((1, 1, 1, 1)),),
]
INPUTS = [
    CALIBRATION[0],
    (torch.tensor([-3000.0], dtype=torch.float32).reshape((1, 1, 1, 1)),),
]


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
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT+int16"))
    partitioner = TOSAPartitioner(compile_spec)
    quantizer = TOSAQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_a16w8_quantization_config(is_per_channel=True))
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
    for inputs in INPUTS:
        print("running", [tuple(tensor.shape) for tensor in inputs], flush=True)
        run_lowered(edge.exported_program(), inputs)


if __name__ == "__main__":
    print("expected: the program runs on the TOSA reference model", flush=True)
    try:
        main()
    except Exception as error:
        while error.__cause__ is not None:  # passes and fx wrap what was raised
            error = error.__cause__
        traceback.print_exception(error, chain=False, limit=-6)
        print(f"actual:   {type(error).__name__}: {error}")
        if type(error).__name__ == 'RuntimeError' and 'the TOSA reference model returned' in " ".join(str(error).split()):
            print("The bug shows.")
            sys.exit(1)
        print("Another error than the one of this report.")
        sys.exit(2)
    print("The bug does not show.")
