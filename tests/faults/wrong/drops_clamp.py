"""Wrong on purpose: the activation is fused and its clamp goes nowhere."""

from harness.corrections import Change, Correction, Edit

CORRECTION = Correction(
    name="drops-clamp",
    entries=("conv-relu-clamp-dropped",),
    cause="The clamp is moved into quant_min. Wrong correction.",
    change="quant_min stays as it was, and so nothing clamps.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_quantized_activation_pass",
            "FuseQuantizedActivationPass._set_quant_qmin_to_zp",
            {"1.5.1": "3c0b9eb1fcc0"},
            (Edit("        quant_node.update_arg(3, quant_args.zp)\n", "        assert quant_args\n"),),
        ),
    ),
    patterns=(("conv2d", "relu"),),
)
