"""``elu-constant-keeps-parameters``: an elu of a constant is folded with its own alpha and scales."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="elu-constant-keeps-parameters",
    entries=("elu-of-constant-folded",),
    cause=(
        "ConvertELUParamsPass puts placeholders in the place of alpha, scale and input_scale, and keeps the numbers in "
        "the node's metadata, where InsertTableOpsPass finds them. FuseConstantArgsPass evaluates the placeholders."
    ),
    change="FuseConstantArgsPass takes the parameters of an elu from its metadata, too.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_constant_ops_pass",
            "FuseConstantArgsPass._fuse_nodes",
            {"1.4.1": "f447f2440fb9", "1.5.1": "f447f2440fb9"},
            (
                Edit(
                    "        data = node.target(*new_args, **new_kwargs)\n",
                    '        if "float_alpha" in node.meta:\n'
                    "            # The arguments of a quantized elu are placeholders (ConvertELUParamsPass).\n"
                    "            new_kwargs = {\n"
                    '                "alpha": node.meta["float_alpha"],\n'
                    '                "scale": node.meta["float_scale"],\n'
                    '                "input_scale": node.meta["float_input_scale"],\n'
                    "            }\n"
                    "        data = node.target(*new_args, **new_kwargs)\n",
                ),
            ),
        ),
    ),
    patterns=(("elu|selu|celu",),),
)
