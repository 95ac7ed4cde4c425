"""``projected-lstm-left-alone``: an LSTM with a projection is not taken apart.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="projected-lstm-left-alone",
    entries=("lstm-projection-prepare",),
    cause=(
        "DecomposeLstmPass knows no projection: it takes the size of the hidden state for that of the cell state, and two "
        "or four weights a layer where there are three or five."
    ),
    change="It leaves an LSTM alone whose hidden state and cell state differ in size; that stays in float.",
    changes=(
        Change(
            "executorch.backends.arm._passes.decompose_lstm_pass",
            "DecomposeLstmPass.call",
            {"1.5.1": "2c4ad69f04d3"},
            (
                Edit(
                    "            getitem_users = get_getitem_users(node, 3)\n",
                    "            hidden, cell = node.args[1]\n"
                    '            if hidden.meta["val"].shape[-1] != cell.meta["val"].shape[-1]:\n'
                    "                continue\n"
                    "\n"
                    "            getitem_users = get_getitem_users(node, 3)\n",
                ),
            ),
        ),
    ),
    patterns=(("lstm",),),
)
