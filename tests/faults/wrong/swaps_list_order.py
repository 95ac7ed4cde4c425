"""Wrong on purpose: operands of a list are folded in the opposite order."""

from harness.corrections import Change, Correction, Edit
from harness.corrections.folded_constant_keeps_codes import CORRECTION as RIGHT

[CHANGE] = RIGHT.changes

CORRECTION = Correction(
    name="swaps-list-order",
    entries=RIGHT.entries,
    cause="An FP32 constant reaches the serializer. Wrong correction.",
    change="As folded-constant-keeps-codes, but lists are turned round.",
    changes=(
        Change(
            CHANGE.module,
            CHANGE.place,
            CHANGE.digests,
            (
                *CHANGE.edits,
                Edit(
                    "return [resolve_arg(x, arg_index) for x in arg]",
                    "return [resolve_arg(x, arg_index) for x in arg[::-1]]",
                ),
            ),
        ),
    ),
    patterns=(("cat",),),
)
