"""``max-pool-keeps-output-qparams``: max_pool2d takes over the output qparams of the getitem that it replaces."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_COPY = "                    _copy_node_metadata(node, new_max_wd)\n"

CORRECTION = Correction(
    name="max-pool-keeps-output-qparams",
    entries=("max-pool-of-constant-fp32",),
    cause=(
        "RemoveGetItemPass gives max_pool2d and amax the meta of the operator with indices, and the output_qparams sit "
        "on its getitem. FuseConstantArgsPass does not requantize a folded pool, so that it stays FP32."
    ),
    change="RemoveGetItemPass takes the output_qparams of the getitem.",
    changes=(
        Change(
            "executorch.backends.transforms.remove_getitem_op",
            "RemoveGetItemPass.call",
            {"1.4.1": "724abd2ecfd1", "1.5.1": "724abd2ecfd1"},
            (
                Edit(
                    _COPY,
                    _COPY
                    + "                    # The getitem owns the qparams of the value that it selects.\n"
                    + '                    if "output_qparams" in getitem_node.meta:\n'
                    + '                        new_max_wd.meta["output_qparams"] = getitem_node.meta[\n'
                    + '                            "output_qparams"\n'
                    + "                        ]\n",
                ),
            ),
        ),
    ),
    patterns=(("max_pool2d|max_pool1d|adaptive_max_pool2d|max|amax",),),
)
