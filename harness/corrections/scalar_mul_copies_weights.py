"""``scalar-mul-copies-weights``: a scalar that is folded into a conv scales a copy of the weights."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="scalar-mul-copies-weights",
    entries=("prepare-scales-user-weights",),
    cause=(
        "FoldScalarMulIntoConvPass runs for annotation and copies the scaled weight and bias into the parameters of "
        "the exported module. Those are the parameters of the user's model, which then returns other values."
    ),
    change="The scaled tensor replaces the attribute of the exported module.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fold_scalar_mul_into_conv_pass",
            "FoldScalarMulIntoConvPass._set_get_attr_tensor",
            {"1.4.1": "6c1e789add76", "1.5.1": "6c1e789add76"},
            (
                Edit(
                    "        with torch.no_grad():\n"
                    "            attr_tensor.copy_(\n"
                    "                tensor.to(device=attr_tensor.device, dtype=attr_tensor.dtype)\n"
                    "            )\n",
                    "        # The exported module shares its tensors with the model that it was exported\n"
                    "        # from, so replace the attribute instead of writing into it.\n"
                    "        new_tensor = tensor.to(device=attr_tensor.device, dtype=attr_tensor.dtype)\n"
                    "        if isinstance(attr_tensor, torch.nn.Parameter):\n"
                    "            new_tensor = torch.nn.Parameter(\n"
                    "                new_tensor, requires_grad=attr_tensor.requires_grad\n"
                    "            )\n"
                    '        module_name, _, attr_name = target.rpartition(".")\n'
                    "        setattr(owning_module.get_submodule(module_name), attr_name, new_tensor)\n",
                ),
            ),
        ),
    ),
    patterns=(("conv1d|conv2d|conv3d|conv_transpose2d", "mul|div"),),
)
