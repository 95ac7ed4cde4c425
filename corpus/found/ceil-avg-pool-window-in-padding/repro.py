"""avg_pool2d with ceil_mode and padding has one window too many, in the padding alone

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
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def forward(self, x0):
        n0 = F.avg_pool2d(x0, (2, 1), stride=(3, 1), padding=(1, 0), ceil_mode=True, count_include_pad=True)
        return n0


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [
    (torch.from_numpy(draw('x0', i).uniform(0.0, 1.0, (1, 1, 2, 1)).astype(np.float32)),)
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
    quantized = convert_pt2e(prepared)
    with torch.no_grad():
        expected, actual = model(*CALIBRATION[0]), quantized(*CALIBRATION[0])
    shapes = [
        [list(item.shape) for item in (values if isinstance(values, (list, tuple)) else [values])]
        for values in (expected, actual)
    ]
    print(f"expected outputs of shapes {shapes[0]}")
    print(f"actual   outputs of shapes {shapes[1]}")
    print("The bug shows." if shapes[0] != shapes[1] else "The bug does not show.")
    return shapes[0] != shapes[1]


if __name__ == "__main__":
    sys.exit(main())
