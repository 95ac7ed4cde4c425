"""``cat-keeps-repeated-inputs``: a permute that crosses a cat leaves it all its operands."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_PLACE = "PropagateViewCopyPermuteUpPass._maybe_split_upwards_cat_fanout"
_EDITS = (
    Edit(
        "        cat_inputs = list(next_node.all_input_nodes)\n",
        "        # all_input_nodes holds an operand that occurs twice once.\n"
        "        cat_inputs = list(next_node.args[0])\n",
    ),
)

CORRECTION = Correction(
    name="cat-keeps-repeated-inputs",
    entries=("cat-repeated-input-dropped",),
    cause=(
        "Where the operands' permutes would do nothing, _maybe_split_upwards_cat_fanout moves a permute in front of a "
        "cat and makes its operands anew from all_input_nodes, which has each node once: cat([x, x]) becomes cat([x])."
    ),
    change="_maybe_split_upwards_cat_fanout takes the operands from the cat's arguments.",
    changes=(
        Change(
            "executorch.backends.arm._passes.propagate_view_copy_permute_pass",
            _PLACE,
            {"1.4.1": "f99fd14552ac"},
            _EDITS,
        ),
        Change(
            "executorch.backends.transforms.propagate_view_copy_permute_pass", _PLACE, {"1.5.1": "8bf612e72236"}, _EDITS
        ),
    ),
    patterns=(("cat|stack",),),
)
