"""A quantized graph altered by hand: domains that no quantizer chooses (recipe word ``edited=OPERATOR``).

Upstream's #18999 needs one: an operator that only moves data, between a dequantize and a quantize node of
different domains. PT2E gives both one domain. Here every quantize node behind the operator, and the
dequantize nodes that read it, get twice the scale and a zero point five codes higher (lower, at the top of the range).

Imports torch; runs in worker processes only.
"""

from __future__ import annotations

import torch

from harness.case.errors import BadInput
from harness.case.traits import DEQUANTIZE, QUANTIZE
from harness.compat.states import operator_name

FACTOR, SHIFT = 2.0, 5


def change_domains(module: torch.fx.GraphModule, operator: str) -> None:
    """Change the domain of every result of an operator (``cat``) in place.

    :raises BadInput: no result of such an operator is quantized with literal parameters.
    """
    edited = 0
    for node in module.graph.nodes:
        if node.op != "call_function" or operator_name(node.target).split(".")[1:2] != [operator]:
            continue
        for quantize in [user for user in node.users if operator_name(user.target).startswith(QUANTIZE)]:
            scale, zero_point, _, highest = quantize.args[1:5]
            shift = SHIFT if zero_point + SHIFT <= highest else -SHIFT
            readers = [user for user in quantize.users if operator_name(user.target).startswith(DEQUANTIZE)]
            for item in (quantize, *readers):
                item.args = (item.args[0], scale * FACTOR, zero_point + shift, *item.args[3:])
                edited += 1
    if not edited:
        raise BadInput("recipe", f"edited={operator}: no result of {operator} is quantized", "name another operator")
    module.recompile()
