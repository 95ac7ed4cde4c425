"""``comparison-spec-stays-behind``: what is shared with a comparison's first operand is not shared before it.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_APPENDED = "        if self._skip_shared_qspec_from_io(user_node, input_qspec):\n"

CORRECTION = Correction(
    name="comparison-spec-stays-behind",
    entries=("comparison-second-operand-of-uint8-input",),
    cause=(
        "A comparison shares its first operand's qparams with the second operand. SharedQspecQuantizer takes that spec "
        "for the operators before the second operand if no other neighbour has one, and prepare_pt2e comes to them "
        "before it has an observer for the comparison's first operand."
    ),
    change="A spec that is shared with an operand of the reader itself is not taken.",
    changes=(
        Change(
            "executorch.backends.arm.quantizer.arm_quantizer_utils",
            "SharedQspecQuantizer._append_input_qspec",
            {"1.5.1": "28a9fa4f5ccd"},
            (
                Edit(
                    _APPENDED,
                    "        edge = getattr(input_qspec, 'edge_or_node', None)\n"
                    "        if isinstance(edge, tuple) and edge[1] is user_node:\n"
                    "            return\n" + _APPENDED,
                ),
            ),
        ),
    ),
    patterns=(("gt|ge|lt|le|eq|ne",),),
)
