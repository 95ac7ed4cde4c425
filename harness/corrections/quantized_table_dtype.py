"""``quantized-table-dtype``: a quantized sigmoid has the integer dtype of its TABLE from the beginning."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="quantized-table-dtype",
    entries=("sigmoid-avg-pool-float",),
    cause=(
        "After q-dq folding sigmoid, tanh and the like read integers, and their fake values promote to float32 until "
        "InsertTableOpsPass runs. RewriteAvgPool2dPass comes earlier and rejects the input."
    ),
    change=(
        "ArmPass gives the fake value of a quantized operator that becomes a TABLE the dtype of its output qparams. "
        "ReplaceScalarWithTensorByProfilePass, which goes past ArmPass for them, does too."
    ),
    changes=(
        Change(
            "executorch.backends.arm._passes.arm_pass",
            "ArmPass.call_operator",
            {"1.4.1": "7f63343d869a", "1.5.1": "7f63343d869a"},
            (
                Edit(
                    "        if not updated:\n            return super().call_operator(op, args, kwargs, meta)\n",
                    "        if not updated:\n"
                    "            if self._is_quantized_meta(meta):\n"
                    "                from executorch.backends.arm._passes.insert_table_ops import (\n"
                    "                    TableOps,\n"
                    "                )\n\n"
                    "                if op in TableOps.unary_table_ops or op in TableOps.special_table_ops:\n"
                    "                    # Integer inputs promote to float here, but TABLE returns codes.\n"
                    "                    result = super().call_operator(op, args, kwargs, meta)\n"
                    '                    output_qparams = meta.data["output_qparams"]\n'
                    "                    dtype = next(iter(output_qparams.values())).dtype\n"
                    "                    data = result.data.to(dtype)\n"
                    "                    self.tracer.set_metadata(result.node, data)\n"
                    "                    return ProxyValue(data, result.proxy)\n"
                    "            return super().call_operator(op, args, kwargs, meta)\n",
                ),
            ),
        ),
        Change(
            "executorch.backends.arm._passes.replace_scalar_with_tensor_pass",
            "ReplaceScalarWithTensorByProfilePass.call_operator",
            {"1.4.1": "1fb932e77fe0", "1.5.1": "61f85246d0e0"},
            (
                Edit(
                    "                return ExportPass.call_operator(self, op, args, kwargs, meta)\n",
                    "                from executorch.exir.pass_base import ProxyValue\n\n"
                    "                result = ExportPass.call_operator(self, op, args, kwargs, meta)\n"
                    "                data = result.data.to(next(iter(output_qparams.values())).dtype)\n"
                    "                self.tracer.set_metadata(result.node, data)\n"
                    "                return ProxyValue(data, result.proxy)\n",
                ),
            ),
        ),
    ),
    patterns=(
        (
            "sigmoid|tanh|exp|log|rsqrt|reciprocal|silu|gelu|elu|erf|sin|cos|atan|atanh|asin|acos|asinh|acosh|sinh|cosh|"
            "tan|ceil|floor|round|hardsigmoid|hardswish|leaky_relu|pow|sqrt|softmax|log_softmax|expm1|log1p|remainder",
        ),
    ),
)
