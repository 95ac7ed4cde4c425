"""``clamped-constant-keeps-codes``: a clamp of a constant is folded in codes, as its bounds are."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_ARGS = "        new_args = tuple(\n"
_OUTPUT = '        if "output_qparams" in node.meta and len(node.meta["output_qparams"]) > 0:\n'

CORRECTION = Correction(
    name="clamped-constant-keeps-codes",
    entries=("clamp-of-constant-folded",),
    cause=(
        "QuantizeClampArgumentsPass replaces the bounds of a quantized clamp by codes. FuseConstantArgsPass then "
        "dequantizes the clamp's constant operand, clamps real numbers between codes, and quantizes the result."
    ),
    change="FuseConstantArgsPass evaluates a quantized clamp on codes, and does not quantize the result again.",
    changes=(
        Change(
            "executorch.backends.arm._passes.fuse_constant_ops_pass",
            "FuseConstantArgsPass._fuse_nodes",
            {"1.4.1": "f447f2440fb9", "1.5.1": "f447f2440fb9"},
            (
                Edit(
                    _ARGS,
                    "        # QuantizeClampArgumentsPass has made codes of the bounds already.\n"
                    "        is_clamp = node.target == exir_ops.edge.aten.clamp.default\n"
                    "        on_codes = bool(is_clamp and qparams)\n"
                    "        if on_codes:\n"
                    "            qparams = None\n\n" + _ARGS,
                ),
                Edit(
                    _OUTPUT,
                    "        if (\n"
                    "            not on_codes\n"
                    '            and "output_qparams" in node.meta\n'
                    '            and len(node.meta["output_qparams"]) > 0\n'
                    "        ):\n",
                ),
            ),
        ),
    ),
    patterns=(
        ("full|zeros|ones|ramp|full_like|ones_like", "clamp|relu|relu6|hardtanh"),
        ("clamp|relu|relu6|hardtanh",),
    ),
)
