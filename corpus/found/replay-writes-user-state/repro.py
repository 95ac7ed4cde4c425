"""prepare_pt2e runs what writes in place on the buffers of the float model

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import zlib

import numpy as np
import torch
from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('c0', torch.tensor([0.0, 0.0, 0.0, 0.0], dtype=torch.float32).reshape((4,)))

    def forward(self, x0):
        n1 = torch.ops.aten.copy_.default(self.c0, x0)
        n2 = torch.ops.aten.add_.Tensor(n1, 1.0)
        n4 = torch.ops.aten.arange.default(4, device=torch.device('cpu'), pin_memory=False)
        n5 = torch.ops.aten.to.dtype(n4, torch.float32)
        n6 = torch.ops.aten.add.Tensor(n2, n5)
        return n6


def draw(name, index, seed=0):
    """The random generator of one sample of one input."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), index])


CALIBRATION = [(torch.from_numpy(draw('x0', i).uniform(0.0, 1.0, (4,)).astype(np.float32)),) for i in range(2)]


def main():
    model = Model().eval()
    compile_spec = TosaCompileSpec(TosaSpecification.create_from_string("TOSA-1.0+INT"))
    quantizer = TOSAQuantizer(compile_spec)
    quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    graph = torch.export.export(model, CALIBRATION[0]).module(check_guards=False)
    prepared = prepare_pt2e(graph, quantizer)
    for sample in CALIBRATION:
        prepared(*sample)
    quantized = convert_pt2e(prepared)
    after, changed = model.state_dict(), []
    for name, value in before.items():
        if not torch.equal(value, after[name]):
            changed.append(name)
            print(f"{name}: expected {value.flatten()[:8].tolist()}")
            print(f"{' ' * len(name)}  actual   {after[name].flatten()[:8].tolist()}")
    print(f"parameters and buffers of the user's module that changed: {changed or 'none'}")
    print("The bug shows." if changed else "The bug does not show.")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main())
