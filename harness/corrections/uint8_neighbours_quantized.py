"""``uint8-neighbours-quantized``: operators that share their qparams are int8 beside a uint8 input or output, too."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="uint8-neighbours-quantized",
    entries=(
        "adaptive-avg-pool-uint8-output",
        "adaptive-avg-pool-uint8-clamp-crash",
        "uint8-amax-before-slice-scatter",
    ),
    cause=(
        "SharedQspecQuantizer leaves a group of operators that share their qparams out where one of them is a cat, "
        "stack, slice or pixel_shuffle and one stands beside a uint8 input or output. Operators behind the group are "
        "float then, and read what others dequantized; the partitioner takes them nevertheless, and folds the quantize "
        "node of the uint8 output into the last one that has codes, which are int8 codes of another scale."
    ),
    change="Such a group is quantized as any other; a RESCALE between int8 and uint8 stands at its edge.",
    changes=(
        Change(
            "executorch.backends.arm.quantizer.arm_quantizer_utils",
            "SharedQspecQuantizer._annotate_shared_cluster",
            {"1.5.1": "81e856634c2e"},
            (
                Edit(
                    "        if touches_uint8_quantized_io and any(\n"
                    "            node.target in self._UINT8_IO_BRIDGE_OPS for node in shared_nodes\n"
                    "        ):\n"
                    "            self.report_reject(\n"
                    "                ordered_nodes,\n"
                    '                "Shared-qspec bridge cluster touches uint8 model IO.",\n'
                    "            )\n"
                    "            return\n"
                    "\n",
                    "",
                ),
            ),
        ),
    ),
    patterns=(("adaptive_avg_pool2d",), ("amax|amin|sum|cumsum", "cat|stack|slice|pixel_shuffle|slice_scatter")),
)
