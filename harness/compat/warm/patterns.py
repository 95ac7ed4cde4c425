"""``untraced_without_root``: patterns of quantization-aware training are traced for graphs that could match one.

Where a batch_norm is left, ``convert_pt2e`` exports 96 patterns with torch.export, one after the other, to fold what
quantization-aware training had put around a convolution: seconds for each lowering, 27 on a busy machine. All that it
looks for takes a square root of the running variance, as a node of its own; a graph without such a node matches none of
them.

Imports torchao: only worker processes import this module.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch
from torchao.quantization.pt2e import qat_utils

from harness.compat.sources import unchanged

_WRITTEN_FOR = {
    "_fold_conv_bn_qat_helper": "a7f715d1f9f1",
    "_get_quantized_qat_conv_bn_pattern": "90c8c2242a44",
}
"""What was read: that the patterns take a square root, and that folding begins with them."""


def untraced_without_root() -> bool:
    """Leave the patterns out where none can match, if the installed ones are known; returns whether they are."""
    if not unchanged(qat_utils.__name__, _WRITTEN_FOR):
        return False
    original = qat_utils._fold_conv_bn_qat_helper

    def fold(graph_module: torch.fx.GraphModule, *arguments: Any, **named: Any) -> torch.fx.GraphModule:
        if any(node.target is torch.ops.aten.sqrt.default for node in graph_module.graph.nodes):
            return original(graph_module, *arguments, **named)
        with mock.patch.multiple(
            qat_utils,
            _get_aten_graph_module_for_pattern=lambda *_, **__: None,
            replace_pattern_with_filters=lambda *_, **__: [],
        ):
            return original(graph_module, *arguments, **named)

    qat_utils._fold_conv_bn_qat_helper = fold
    return True
