"""``folded-constant-keeps-codes``: a constant that only moves is folded as the codes that it holds.

A stack becomes several operators after its qparams were annotated: the first has input_qparams alone, the last
output_qparams alone. So codes have to stay codes all along: kept by what has no output_qparams, and not
quantized a second time by what has no input_qparams (``stack([c, c])`` of a constant: cat, then view).
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm._passes.fuse_constant_ops_pass"

CORRECTION = Correction(
    name="folded-constant-keeps-codes",
    entries=("stack-of-constant-fp32", "select-scatter-of-constant-folded-twice"),
    cause=(
        "FuseConstantArgsPass dequantizes constants with input_qparams and requantizes the result only if there are "
        "output_qparams. The unsqueeze that stack becomes has none, so an FP32 constant meets int8 codes."
    ),
    change=(
        "An operator without output_qparams whose dtype is the constant's is evaluated on the codes, and a result that "
        "holds codes already is not quantized."
    ),
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
                Edit(
                    "            data = q_params.quantize_value(data)\n",
                    "            # Codes that were moved (e.g. by cat and view in stack) stay as they are.\n"
                    "            if qparams or data.dtype != output_dtype:\n"
                    "                data = q_params.quantize_value(data)\n",
                ),
            ),
        ),
    ),
    patterns=(
        (
            "stack|select_scatter|unsqueeze|squeeze|view|reshape|permute|transpose|slice|select|cat|expand|repeat|flatten",
        ),
    ),
)
