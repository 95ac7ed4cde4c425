"""``lifted-constants-in-order``: without user inputs, lifted constants stand in the order of their specs.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_LOOP = '    for node in ep.graph.nodes:\n        if node.op == "get_attr":\n'

CORRECTION = Correction(
    name="lifted-constants-in-order",
    entries=("no-input-two-lifted-constants",),
    cause=(
        "lift_constant_tensor_pass inserts each constant before the first user input. Where there is none it inserts it "
        "at the beginning of the graph, so that the last one comes first, and appends its spec behind those before it."
    ),
    change="Without a user input, constants are inserted behind all placeholders, and their specs stand there, too.",
    changes=(
        Change(
            "executorch.exir.program._program",
            "lift_constant_tensor_pass",
            {"1.5.1": "b1c3c0bfed44"},
            (
                Edit(
                    _LOOP,
                    "    if first_user_input is None:\n"
                    "        first_user_input = next(\n"
                    '            node for node in ep.graph.nodes if node.op not in ("placeholder", "get_attr")\n'
                    "        )\n"
                    "\n" + _LOOP,
                ),
                Edit(
                    "        new_input_specs = lifted_constants + new_input_specs\n",
                    "        new_input_specs += lifted_constants\n",
                ),
            ),
        ),
    ),
    patterns=(("celu|elu|selu|roll|where",),),
)
