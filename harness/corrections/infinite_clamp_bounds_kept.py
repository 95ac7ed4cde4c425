"""``infinite-clamp-bounds-kept``: a clamp whose bound is infinite bounds nothing on that side."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

CORRECTION = Correction(
    name="infinite-clamp-bounds-kept",
    entries=("infinite-clamp-bound-replaced",),
    cause=(
        "ReplaceInfAndLimitValuesPass makes infinity and float32's largest number, wherever a call has one, into 255, "
        "and their negatives into -256, so that a mask can be quantized. A bound of a clamp is not quantized as "
        "a value."
    ),
    change="The pass leaves the bounds of clamp and hardtanh as they are; what lowers them takes the end of the codes.",
    changes=(
        Change(
            "executorch.backends.arm._passes.replace_inf_and_limit_values_pass",
            "ReplaceInfAndLimitValuesPass.call",
            {"1.4.1": "30723d49be71", "1.5.1": "30723d49be71"},
            (
                Edit(
                    "        for node in graph_module.graph.nodes:\n",
                    "        clamps = (\n"
                    "            torch.ops.aten.clamp,\n"
                    "            torch.ops.aten.clamp_,\n"
                    "            torch.ops.aten.hardtanh,\n"
                    "            torch.ops.aten.hardtanh_,\n"
                    "        )\n"
                    "        for node in graph_module.graph.nodes:\n"
                    '            if getattr(node.target, "overloadpacket", None) in clamps:\n'
                    "                continue\n",
                ),
            ),
        ),
    ),
    patterns=(("clamp|hardtanh",),),
)
