"""``unread-constants-stay-outside``: a constant that nothing in the delegate reads is no output of it.

For ``--correction FILE``; not certified, and so not one of ``harness/corrections``. It takes
int64-constant-leaves-delegate away, too. With all that is computed from constants in the place of the constants alone
certify found no graph of 320 that it made wrong; together with all corrections a pad of constants then stays in float,
and shows float-pad-no-out-variant.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_END = '                        del node.meta["delegation_tag"]\n                        break\n'

CORRECTION = Correction(
    name="unread-constants-stay-outside",
    entries=("constant-leaves-u55-delegate",),
    cause=(
        "The partitioner takes what makes a constant (full, arange) into a partition though nothing there reads it. "
        "The constant is an output of the delegate then: in int32 where the program has int64, and on Ethos-U55 it "
        "makes Vela refuse operators beside it."
    ),
    change="What makes a constant leaves a partition in which nothing reads it.",
    changes=(
        Change(
            "executorch.backends.arm.tosa.partitioner",
            "TOSAPartitioner._detag_boundary_nodes",
            {"1.5.1": "e5488f12d73a"},
            (
                Edit(
                    _END,
                    _END + "        # A constant that nothing in the partition reads would only be an output of it.\n"
                    "        for node in module.graph.nodes:\n"
                    "            if is_partitioned(node, tag) and not (\n"
                    "                node.all_input_nodes or any(is_partitioned(user, tag) for user in node.users)\n"
                    "            ):\n"
                    '                reporter.report_reject(node, "Nothing in the partition reads this constant.")\n'
                    '                del node.meta["delegation_tag"]\n',
                ),
            ),
        ),
    ),
    patterns=(("select_scatter",), ("conv2d", "select_scatter"), ("ones_like|zeros_like|full_like",)),
)
