"""``writes-reach-their-buffer``: the second write into a buffer is in the buffer, too.

For ``--correction FILE``; it has no certificate, and so is not one of ``harness/corrections``.
"""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_PLACE = "            # Postprocessing passes\n"
_RETURN = "            return GraphModulePassManager(self.passes)(graph_module).graph_module\n"
_HELPER = '''

def _write_into_buffers(graph_module: GraphModule):
    """Let each copy_ write into its buffer, and not into what an earlier copy_ returned."""
    import torch
    from torch.fx.passes.infra.pass_base import PassResult

    copy = torch.ops.aten.copy_.default
    modified = False
    for node in graph_module.graph.nodes:
        if node.target != copy:
            continue
        written = node.args[0]
        while written.target == copy:
            written = written.args[0]
        if written is not node.args[0] and written.op in ("get_attr", "placeholder"):
            node.update_arg(0, written)
            modified = True
    return PassResult(graph_module, modified)
'''

CORRECTION = Correction(
    name="writes-reach-their-buffer",
    entries=("second-write-to-buffer-lost",),
    cause=(
        "The quantizer's graph has writes that are not functional yet, and the second write into a buffer goes into what "
        "the first one returns. convert_pt2e puts Q/DQ nodes between the two, so it goes into another tensor."
    ),
    change="Before annotation every copy_ names the buffer itself.",
    changes=(
        Change(
            "executorch.backends.arm._passes.arm_pass_manager",
            "ArmPassManager.transform_for_annotation_pipeline",
            {"1.5.1": "1886bcf3e329"},
            (
                Edit(_PLACE, "            self.add_pass(_write_into_buffers)\n\n" + _PLACE),
                Edit(_RETURN, _RETURN + _HELPER),
            ),
        ),
    ),
    patterns=(("add|sub|mul|div",),),
    needs=("split-partition-has-no-cycle",),
)
