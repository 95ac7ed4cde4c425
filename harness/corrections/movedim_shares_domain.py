"""``movedim-shares-domain``: movedim and moveaxis have the domain of their operand, as permute has."""

from __future__ import annotations

from harness.corrections.correction import Change, Correction, Edit

_MODULE = "executorch.backends.arm.quantizer.arm_quantizer_utils"
_FOUND = "        nodes = self.node_finder.find_nodes(model)\n"
_NOT_MOVED = """\
        moves = (torch.ops.aten.movedim, torch.ops.aten.moveaxis)
        nodes = (
            node
            for node in self.node_finder.find_nodes(model)
            if getattr(node.target, "overloadpacket", None) not in moves
        )
"""
_DEFAULT = "            self.targets = self.SHARED_QSPEC_OPS_DEFAULT\n"
_WITH_MOVES = """\
            self.targets = [
                *self.SHARED_QSPEC_OPS_DEFAULT,
                torch.ops.aten.movedim.int,
                torch.ops.aten.movedim.intlist,
                torch.ops.aten.moveaxis.int,
                torch.ops.aten.moveaxis.intlist,
            ]
"""

CORRECTION = Correction(
    name="movedim-shares-domain",
    entries=("movedim-of-another-domain",),
    upstream=("https://github.com/pytorch/executorch/pull/20912",),
    cause=(
        "The composable quantizer has movedim and moveaxis among the patterns whose outputs get domains of their own, "
        "and not among the operators that share one, where permute and transpose are."
    ),
    change="PatternQuantizer leaves the two to SharedQspecQuantizer, which gives input and output one domain.",
    changes=(
        Change(
            _MODULE,
            "PatternQuantizer.annotate",
            dict.fromkeys(("1.4.1", "1.5.1"), "2e8c6e42bb8e"),
            (Edit(_FOUND, _NOT_MOVED),),
        ),
        Change(
            _MODULE,
            "SharedQspecQuantizer.__init__",
            dict.fromkeys(("1.4.1", "1.5.1"), "94cc29284380"),
            (Edit(_DEFAULT, _WITH_MOVES),),
        ),
    ),
    patterns=(("movedim",),),
)
