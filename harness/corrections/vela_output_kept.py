"""``vela-output-kept``: a convolution reads another's result before the transpose whose own result is an output."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.transforms.canonicalize_view_copy_permute_pass"
_CHAINS = """\
        for chain in self._collect_chains(graph_module):
"""
_UNDONE = """\
        # Chains have one user each: a permute which undoes one with more users,
        # such as an output, reads what that one reads.
        for node in graph_module.graph.nodes:
            if not self._is_permute(node) or not self._is_permute(node.args[0]):
                continue
            rank = len(self._shape(node))
            dims = [dim % rank for dim in self._permute_dims(node.args[0])]
            if [dims[dim] for dim in self._permute_dims(node)] == list(range(rank)):
                node.replace_all_uses_with(node.args[0].args[0])
                modified = True

"""

CORRECTION = Correction(
    name="vela-output-kept",
    entries=("vela-drops-output", "vela-transposed-back-reshape-segfault"),
    cause=(
        "Vela 5.1.0 cancels a TRANSPOSE and the one that undoes it also where the tensor between them is an output of "
        "the graph, and drops that output. ExecuTorch leaves the pair, as it fuses only transposes with one user."
    ),
    change="CanonicalizeViewCopyPermutePass lets the users of a permute that undoes another read the latter's input.",
    changes=(
        Change(
            _MODULE,
            "CanonicalizeViewCopyPermutePass.call",
            {"1.5.1": "f104d43cf921"},
            (Edit(_CHAINS, _UNDONE + _CHAINS),),
        ),
    ),
    patterns=(("conv1d|conv2d|conv_transpose2d|avg_pool2d|max_pool2d",) * 2,),
    workaround=True,
)
