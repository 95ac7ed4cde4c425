"""Wrong on purpose: constants are folded as the codes that they hold, in whatever domain the operator computes."""

from harness.corrections import Change, Correction, Edit

CORRECTION = Correction(
    name="skips-dequantizing",
    entries=("stack-of-constant-fp32",),
    cause="An FP32 constant reaches the serializer. Wrong correction.",
    change="FuseConstantArgsPass does not dequantize constants.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_constant_ops_pass",
            "FuseConstantArgsPass._fuse_nodes",
            {"1.5.1": "f447f2440fb9"},
            (
                Edit("                    t = qparam.dequantize_value(t)\n", "                    pass\n"),
                Edit(
                    "            data = q_params.quantize_value(data)\n", "            data = data.to(q_params.dtype)\n"
                ),
            ),
        ),
    ),
    patterns=(("cat", "neg|abs|sigmoid|tanh|mul|sub"),),
)
