"""``u55-conv3d-axes``: the depth of a conv3d's kernel is its first axis, not its last."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.operator_support.convolution_support"

CORRECTION = Correction(
    name="u55-conv3d-axes",
    entries=("u55-conv3d-axes-mixed-up",),
    cause=(
        "The check for Ethos-U55 takes kernel_z of a conv3d from the last axis, which is the width. So it delegates "
        "kernels of several planes, which Vela refuses, and leaves those of one plane to the CPU."
    ),
    change="_is_node_supported_u55 takes it from the first of the three axes.",
    changes=(
        Change(
            _MODULE,
            "ConvolutionSupported._is_node_supported_u55",
            {"1.3.1": "27b1634abc38", "1.4.1": "27b1634abc38", "1.5.1": "27b1634abc38"},
            (
                Edit(
                    """\
        kernel_w = kernel[2]
        kernel_h = kernel[3] if len(kernel) > 3 else 1
        kernel_z = kernel[4] if len(kernel) > 4 else 1
""",
                    """\
        # Weights of Conv3d are [out, in, depth, height, width].
        plane = kernel[3:] if len(kernel) > 4 else kernel[2:]
        kernel_w = plane[0]
        kernel_h = plane[1] if len(plane) > 1 else 1
        kernel_z = kernel[2] if len(kernel) > 4 else 1
""",
                ),
            ),
        ),
    ),
    patterns=(("conv3d",),),
)
