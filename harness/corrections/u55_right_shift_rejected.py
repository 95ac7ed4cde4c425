"""``u55-right-shift-rejected``: a right shift of integers is no work for Ethos-U55, which rounds it."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_ACCEPTED = """\
            logger.warning(f"{node.target} may introduce one-off errors.")
"""
_REJECTED = """\
            self.reporter.report_reject(
                node, "Ethos-U55 rounds a right shift, where ATen rounds down."
            )
            return False
"""

CORRECTION = Correction(
    name="u55-right-shift-rejected",
    entries=("right-shift-rounds-on-u55",),
    upstream=("https://github.com/pytorch/executorch/pull/7006",),
    cause=(
        "Ethos-U55 has a right shift that rounds, and the serializer asks for that. The support check takes the "
        "operator all the same, and logs a warning of one-off errors."
    ),
    change="RightShiftSupported rejects the operator on Ethos-U55, so that it falls back to the CPU.",
    changes=(
        Change(
            "executorch.backends.arm.operator_support.right_shift_support",
            "RightShiftSupported.is_node_tosa_supported",
            {"1.4.1": "ed93c5fa1c68", "1.5.1": "ed93c5fa1c68"},
            (Edit(_ACCEPTED, _REJECTED),),
        ),
    ),
    patterns=(("bitwise_right_shift",),),
)
