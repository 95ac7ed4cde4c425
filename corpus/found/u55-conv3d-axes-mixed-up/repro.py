"""The partitioner takes the width of a conv3d's kernel for its depth: one plane stays on the CPU, and of several Vela refuses (Ethos-U55, U65)

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import math
import sys
import traceback
import zlib

import numpy as np
import torch
from executorch.backends.arm.ethosu import EthosUCompileSpec
from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
import executorch.kernels.quantized  # registers kernels
from executorch.runtime import Runtime
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n0 = nn.Conv3d(1, 1, (1, 2, 2), stride=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, bias=False)

    def forward(self, x0):
        n0 = self.n0(x0)
        return n0


def seed_weights(model, seed):
    """Draw every parameter from numpy, by name, within 1/sqrt(fan-in)."""
    for name, parameter in model.named_parameters():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        fan_in = math.prod(parameter.shape[1:]) or 1
        values = rng.uniform(-1.0, 1.0, tuple(parameter.shape)) / math.sqrt(fan_in)
        parameter.data = torch.from_numpy(values.astype(np.float32))


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (torch.from_numpy(draw('x0', i).uniform(0.0, 1.0, (1, 1, 1, 2, 2)).astype(np.float32)),)
    for i in range(1)
]
INPUTS = [
    CALIBRATION[0],
    (
        torch.tensor([0.17808478, 0.17808478, 0.99389774, 0.17808478], dtype=torch.float32).reshape((1, 1, 1, 2, 2)),
    ),
    (
        torch.tensor([0.3756486, 0.41893506, 0.5364928, 0.83921385], dtype=torch.float32).reshape((1, 1, 1, 2, 2)),
    ),
    (
        torch.tensor([-3.0851672, -3.0851672, 4.2571497, -3.0851672], dtype=torch.float32).reshape((1, 1, 1, 2, 2)),
    ),
]


def main():
    model = Model().eval()
    seed_weights(model, 0)
    model.requires_grad_(False)
    compile_spec = EthosUCompileSpec("ethos-u55-128")
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
