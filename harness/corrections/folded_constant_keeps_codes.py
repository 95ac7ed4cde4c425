"""``folded-constant-keeps-codes``: a constant that only moves is folded as the codes that it holds.

Known flaw, found after it was certified: in ``stack([c, c])`` the cat has input_qparams, and the view behind
it output_qparams alone. Upstream hands the view real values, which it quantizes; with this correction it gets
codes and quantizes those. Codes may be kept only where no operator behind quantizes them.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fuse_constant_ops_pass"

CORRECTION = Correction(
    name="folded-constant-keeps-codes",
    entries=("stack-of-constant-fp32",),
    cause=(
        "FuseConstantArgsPass dequantizes constants with input_qparams and requantizes the result only if there are "
        "output_qparams. The unsqueeze that stack becomes has none, so an FP32 constant meets int8 codes."
    ),
    change="An operator without output_qparams whose dtype is the constant's is evaluated on the codes.",
    changes=(
        Change(
            _MODULE,
            "FuseConstantArgsPass._fuse_nodes",
            {"1.4.1": "f447f2440fb9", "1.5.1": "f447f2440fb9"},
            (
                Edit(
                    '        qparams = node.meta.get("input_qparams", None)\n',
                    '        qparams = node.meta.get("input_qparams", None)\n'
                    '        output_qparams = node.meta.get("output_qparams", None)\n'
                    "        output_dtype = get_first_fake_tensor(node).dtype\n",
                ),
                Edit(
                    "                if qparam is not None:\n",
                    "                # Without output qparams nothing requantizes the result, so ops that\n"
                    "                # only move data (e.g. unsqueeze in stack) work on the codes.\n"
                    "                keep_codes = not output_qparams and t.dtype == output_dtype\n"
                    "                if qparam is not None and not keep_codes:\n",
                ),
            ),
        ),
    ),
    patterns=(("stack|unsqueeze|squeeze|view|reshape|permute|transpose|slice|select|cat|expand|repeat|flatten",),),
)
