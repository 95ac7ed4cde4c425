"""``permute-moves-to-its-own-input``: a permute that crosses c - x goes to x, and not to the constant."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.transforms.propagate_view_copy_permute_pass"

CORRECTION = Correction(
    name="permute-moves-to-its-own-input",
    entries=(
        "permute-lost-before-const-minus",
        "permute-lost-after-const-minus",
        "permute-const-minus-broadcast-crash",
        "permute-lost-before-scalar-maximum",
    ),
    cause=(
        "A permute may move up through a binary operator with one layout-dependent input, and _move_node puts it in "
        "front of the operator's first input. For c - x that is the one-element constant, and there it is dropped."
    ),
    change="_move_node takes the operator's first layout-dependent input.",
    changes=(
        Change(
            _MODULE,
            "PropagateViewCopyPermuteUpPass._move_node",
            {"1.5.1": "056d0d93b586"},
            (
                Edit(
                    "            producer = frontier.all_input_nodes[0]\n",
                    "            # Only the layout-dependent input of a binary op needs the transform.\n"
                    "            inputs = frontier.all_input_nodes\n"
                    "            if self.is_multi_input_elementwise(frontier):\n"
                    "                inputs = inputs[:1]\n"
                    '            rank = len(frontier.meta["val"].shape)\n'
                    "            producer = next(\n"
                    "                (\n"
                    "                    input_node\n"
                    "                    for input_node in inputs\n"
                    "                    if not FuseIdenticalInputTransformsPass.is_layout_invariant(\n"
                    "                        input_node, rank\n"
                    "                    )\n"
                    "                ),\n"
                    "                inputs[0],\n"
                    "            )\n",
                ),
            ),
        ),
    ),
    patterns=(("add|sub|rsub|mul|div|minimum|maximum|eq|ne|ge|gt|le|lt|where",),),
)
