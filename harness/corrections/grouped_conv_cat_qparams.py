"""``grouped-conv-cat-qparams``: the cat behind the groups of a convolution takes codes of the output's domain."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_CAT = "        # propagate original metadata (including quantization params) to the concatenated output\n"
_RETURN = "        return super().call_operator(cat_op, cat_args, kwargs, meta, updated=True)\n"

CORRECTION = Correction(
    name="grouped-conv-cat-qparams",
    entries=("grouped-conv-of-constant",),
    cause=(
        "DecomposeGroupedConvPass gives the cat of the groups' results the convolution's own metadata, so its operands "
        "count as codes of the convolution's input. FuseConstantArgsPass, which folds the groups of a constant, "
        "dequantizes their results with the input's scale and quantizes them with the output's."
    ),
    change="The cat's input_qparams are the convolution's output_qparams.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_grouped_conv_pass",
            "DecomposeGroupedConvPass.call_operator",
            {"1.4.1": "0eda31ef79c8", "1.5.1": "0eda31ef79c8"},
            (
                Edit(
                    _CAT + _RETURN,
                    _CAT + "        # but its operands are results of the convolutions\n"
                    "        cat_meta = meta.copy()\n"
                    '        if "input_qparams" in meta.data:\n'
                    '            cat_meta.data["input_qparams"] = meta.data.get("output_qparams", {})\n'
                    + _RETURN.replace("meta,", "cat_meta,"),
                ),
            ),
        ),
    ),
    patterns=(("conv2d|conv1d|conv_transpose2d",),),
)
