"""to_edge raises for a module without inputs in which two numbers become constants

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import math
import sys
import traceback
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Float_n1(nn.Module):
    def forward(self, a0):
        return F.celu(a0, alpha=0.5)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1 = Float_n1()
        self.n2 = nn.Conv1d(2, 1, (2,), stride=(1,), padding=(1,), dilation=(1,), groups=1, bias=False)

    def forward(self):
        c0 = torch.full((1, 1), 1.0)
        n0 = torch.stack([c0, c0], dim=1)
        n1 = self.n1(n0)
        n2 = self.n2(n1)
        return n2


def seed_weights(model, seed):
    """Draw every parameter from numpy, by name, within 1/sqrt(fan-in)."""
    for name, parameter in model.named_parameters():
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        fan_in = math.prod(parameter.shape[1:]) or 1
        values = rng.uniform(-1.0, 1.0, tuple(parameter.shape)) / math.sqrt(fan_in)
        parameter.data = torch.from_numpy(values.astype(np.float32))


CALIBRATION = [
    (),
]


def main():
    model = Model().eval()
    seed_weights(model, 0)
    model.requires_grad_(False)
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    partitioner = TOSAPartitioner(compile_spec)
    quantizer = TOSAQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    quantizer.set_module_name("n1", None)  # stays float
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


if __name__ == "__main__":
    print("expected: the module is lowered", flush=True)
    try:
        main()
    except Exception as error:
        while error.__cause__ is not None:  # passes and fx wrap what was raised
            error = error.__cause__
        traceback.print_exception(error, chain=False, limit=-6)
        print(f"actual:   {type(error).__name__}: {error}")
        if type(error).__name__ == 'SpecViolationError' and 'does not match node name' in " ".join(str(error).split()):
            print("The bug shows.")
            sys.exit(1)
        print("Another error than the one of this report.")
        sys.exit(2)
    print("The bug does not show.")
