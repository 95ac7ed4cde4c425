"""``factory-ops-not-annotated``: full, zeros, ones and their kin are left to the observers of their consumers."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.quantizer.quantization_annotator"

CORRECTION = Correction(
    name="factory-ops-not-annotated",
    entries=("000-full-kwargs",),
    cause=(
        "The annotator annotates factory operators, and 1.2.0 stopped clearing their kwargs. PT2E prepare of torchao "
        "0.15 asserts that an annotated node has none."
    ),
    change="Factory operators are not annotated: consumers and outputs that are annotated observe their values.",
    changes=(
        Change(
            _MODULE,
            "get_quant_properties",
            {"1.2.0": "1a74b61905df"},
            (
                Edit(
                    "    elif node.target in [\n"
                    "        torch.ops.aten.full.default,\n"
                    "        torch.ops.aten.full,\n"
                    "        torch.ops.aten.zeros.default,\n"
                    "        torch.ops.aten.ones.default,\n"
                    "        torch.ops.aten.fill_.Scalar,\n"
                    "        torch.ops.aten.scalar_tensor.default,\n"
                    "    ]:\n"
                    "        quant_properties.quant_inputs = []\n"
                    "        quant_properties.quant_output = _QuantProperty(0, output_act_qspec)\n",
                    "",
                ),
                Edit(
                    "    else:\n        return None\n\n    # Don't check if operator.getitem",
                    "    else:\n"
                    "        # Also for factory ops (full, zeros, ones...): their kwargs are not allowed\n"
                    "        # on annotated nodes, and annotated users observe their values anyway.\n"
                    "        return None\n"
                    "\n"
                    "    # Don't check if operator.getitem",
                ),
            ),
        ),
    ),
    patterns=(("full|zeros|ones",),),
    upstream=("https://github.com/pytorch/executorch/issues/18322",),
)
