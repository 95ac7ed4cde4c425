"""Arithmetic of int32 is delegated to the FP profile, which has none: lowering raises

Needs executorch 1.5.1, torch 2.13.0+cpu, torchao 0.18.0, ethos-u-vela 5.1.0, tosa-tools 2026.5.0.
Exit status 1: the bug shows; 0: it does not.
"""

import sys
import traceback

import torch
from executorch.backends.arm.tosa import TosaSpecification
from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        clamp = torch.ops.aten.clamp.default(x, -25)
        return clamp


CALIBRATION = [
    (torch.tensor([-56, -61, 33, 60, 63, 79, -73, 3, -3], dtype=torch.int32).reshape((1, 3, 3)),),
]


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


if __name__ == "__main__":
    print("expected: the module is lowered", flush=True)
    try:
        main()
    except Exception as error:
        while error.__cause__ is not None:  # passes and fx wrap what was raised
            error = error.__cause__
        traceback.print_exception(error, chain=False, limit=-6)
        print(f"actual:   {type(error).__name__}: {error}")
        if type(error).__name__ == 'TosaValueError' and "+FP doesn't support" in " ".join(str(error).split()):
            print("The bug shows.")
            sys.exit(1)
        print("Another error than the one of this report.")
        sys.exit(2)
    print("The bug does not show.")
