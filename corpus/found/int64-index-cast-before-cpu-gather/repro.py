"""an int64 index is cast to int32 for a gather that stays on the CPU, where no kernel takes it

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import traceback

import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
import executorch.kernels.quantized  # registers kernels
from executorch.runtime import Runtime
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x1, x2):
        n2 = torch.gather(x1, 1, x2)
        return n2


CALIBRATION = [
    (
        torch.tensor([0.76377493, 0.6773743], dtype=torch.float32).reshape((1, 2, 1, 1)),
        torch.tensor([0], dtype=torch.int64).reshape((1, 1, 1, 1)),
    ),
]
INPUTS = [
    CALIBRATION[0],
    (
        torch.tensor([0.76377493, 0.76377493], dtype=torch.float32).reshape((1, 2, 1, 1)),
        torch.tensor([0], dtype=torch.int64).reshape((1, 1, 1, 1)),
    ),
    (
        torch.tensor([0.8624815, 0.15445928], dtype=torch.float32).reshape((1, 2, 1, 1)),
        torch.tensor([1], dtype=torch.int64).reshape((1, 1, 1, 1)),
    ),
    (
        torch.tensor([1.1093774, 1.1093774], dtype=torch.float32).reshape((1, 2, 1, 1)),
        torch.tensor([0], dtype=torch.int64).reshape((1, 1, 1, 1)),
    ),
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
    program = Runtime.get().load_program(bytes(edge.to_executorch().buffer))
    method = program.load_method("forward")
    for inputs in INPUTS:
        print("running", [tuple(tensor.shape) for tensor in inputs], flush=True)
        method.execute(inputs)


if __name__ == "__main__":
    print("expected: the program runs on ExecuTorch's runtime", flush=True)
    try:
        main()
    except Exception as error:
        while error.__cause__ is not None:  # passes and fx wrap what was raised
            error = error.__cause__
        traceback.print_exception(error, chain=False, limit=-6)
        print(f"actual:   {type(error).__name__}: {error}")
        if type(error).__name__ == 'RuntimeError' and 'failed' in " ".join(str(error).split()):
            print("The bug shows.")
            sys.exit(1)
        print("Another error than the one of this report.")
        sys.exit(2)
    print("The bug does not show.")
