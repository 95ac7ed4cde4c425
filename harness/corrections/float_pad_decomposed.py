"""``float-pad-decomposed``: an operator that the quantizer left out is decomposed, as nothing delegates it."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.tosa.partitioner"
_KEEP = """\
                if correct_input_quant and correct_output_quant:
                    return True
"""
_KEEP_QUANTIZED = """\
                # The Q/DQ nodes may be those of the neighbors: CheckArmQuantized
                # accepts the node only if it was annotated itself.
                from executorch.backends.arm.operator_support.tosa_supported_operators import (
                    is_quantized,
                )

                if input_nodes and not is_quantized(node):
                    return False

"""

CORRECTION = Correction(
    name="float-pad-decomposed",
    entries=("float-pad-no-out-variant",),
    cause=(
        "The partitioner keeps an operator between Q/DQ nodes whole, also where these belong to its neighbors and the "
        "operator was excluded from quantization. It then refuses the operator, and aten::pad has no out variant."
    ),
    change="ops_to_not_decompose keeps an operator with inputs only if it is marked as quantized.",
    changes=(
        Change(
            _MODULE,
            "TOSAPartitioner.ops_to_not_decompose",
            {"1.4.1": "37c5e3fe01ca", "1.5.1": "82a26fb8cd5d"},
            (Edit(_KEEP, _KEEP_QUANTIZED + _KEEP),),
        ),
    ),
    patterns=(("pad",), ("linear",), ("hardswish",)),
)
