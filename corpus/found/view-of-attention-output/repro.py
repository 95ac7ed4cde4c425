"""view of what scaled_dot_product_attention returns raises in calibration

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import traceback
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e


class Model(nn.Module):
    def forward(self, x2):
        n3 = F.scaled_dot_product_attention(x2, x2, x2, is_causal=False)
        n4 = n3.view((4, 1, 1, 1))
        return n4


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (torch.from_numpy(draw('x2', i).uniform(0.0, 1.0, (2, 1, 2, 1)).astype(np.float32)),)
    for i in range(1)
]


def main():
    model = Model().eval()
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    quantizer = TOSAQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    graph = torch.export.export(model, CALIBRATION[0]).module(check_guards=False)
    prepared = prepare_pt2e(graph, quantizer)
    for sample in CALIBRATION:
        prepared(*sample)


if __name__ == "__main__":
    print("expected: the module is lowered", flush=True)
    try:
        main()
    except Exception as error:
        while error.__cause__ is not None:  # passes and fx wrap what was raised
            error = error.__cause__
        traceback.print_exception(error, chain=False, limit=-6)
        print(f"actual:   {type(error).__name__}: {error}")
        if type(error).__name__ == 'RuntimeError' and "view size is not compatible with input tensor's size and stride" in " ".join(str(error).split()):
            print("The bug shows.")
            sys.exit(1)
        print("Another error than the one of this report.")
        sys.exit(2)
    print("The bug does not show.")
