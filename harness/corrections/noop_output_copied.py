"""``noop-output-copied``: an input of a delegate that is an output of it as well is copied."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="noop-output-copied",
    entries=("noop-branch-vela-reader-error",),
    upstream=("https://github.com/pytorch/executorch/pull/22436",),
    cause=(
        "The partitioner rejects partitions of no-ops only, so a no-op branch beside real work is delegated, and so is "
        "what only passes reduce to nothing (pixel_shuffle by 1, two permutes, a cat of one). An output of the TOSA "
        "graph is then an input of it, which has no writer, and Vela refuses that."
    ),
    change="EnsureUniqueOutputNodesPass puts an IDENTITY between an input and an output that is the same node.",
    changes=(
        Change(
            "executorch.backends.arm._passes.ensure_unique_output_nodes_pass",
            "EnsureUniqueOutputNodesPass.call",
            {"1.4.1": "4b74f2ea9c7c", "1.5.1": "4b74f2ea9c7c"},
            (
                Edit(
                    """\
        repeated_nodes = {node for node, count in counts.items() if count > 1}
        if not repeated_nodes:
""",
                    """\
        # An input has no writer in the TOSA graph, which an output needs.
        copied_nodes = {
            node
            for node, count in counts.items()
            if count > 1 or node.op == "placeholder"
        }
        if not copied_nodes:
""",
                ),
                Edit(
                    "                if value not in repeated_nodes:\n",
                    "                if value not in copied_nodes:\n",
                ),
            ),
        ),
    ),
    patterns=(
        ("squeeze",),
        ("unsqueeze",),
        ("view|reshape|flatten",),
        ("permute|transpose",),
        ("expand",),
    ),
)
