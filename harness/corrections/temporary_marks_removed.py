"""``temporary-marks-removed``: what was marked as quantized for the decompositions alone does not stay so."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="temporary-marks-removed",
    entries=(
        "adaptive-avg-pool-uint8-output",
        "adaptive-avg-pool-uint8-clamp-crash",
        "uint8-amax-before-slice-scatter",
    ),
    cause=(
        "transform_for_annotation annotates the model, decomposes what is quantized, and removes the annotations; but "
        "_remove_annotations looks for the mark of a quantized node in node.meta, and it is in node.meta['custom']. "
        "What an operator was decomposed into keeps the mark, also where the quantizer then leaves it in float, as "
        "SharedQspecQuantizer does with a cat or slice beside a uint8 input or output. The partitioner takes it, and "
        "the quantize node of the uint8 output is folded into an operator that has int8 codes of another scale."
    ),
    change="The mark is removed where it is; nodes of one decomposition no longer share it.",
    changes=(
        Change(
            "executorch.backends.arm.quantizer.arm_quantizer",
            "_TOSAQuantizerV2._remove_annotations",
            {"1.5.1": "12336b5a10f1"},
            (
                Edit(
                    "            if ArmAnnotationInfo.CUSTOM_META_KEY in node.meta:\n"
                    "                del node.meta[ArmAnnotationInfo.CUSTOM_META_KEY]\n",
                    '            if ArmAnnotationInfo.CUSTOM_META_KEY in node.meta.get("custom", {}):\n'
                    "                # Nodes of one decomposition share the dictionary.\n"
                    '                node.meta["custom"] = {\n'
                    "                    key: value\n"
                    '                    for key, value in node.meta["custom"].items()\n'
                    "                    if key != ArmAnnotationInfo.CUSTOM_META_KEY\n"
                    "                }\n",
                ),
            ),
        ),
    ),
    patterns=(("adaptive_avg_pool2d",), ("slice_scatter|select_scatter",), ("mean|softmax|layer_norm",)),
)
