"""MobileNetV2 (width 1, 224 by 224, 1000 classes) as torch modules, quantized and lowered for an Ethos-U.

3.5 million weights, 300 million multiplications: the size of network that the model has to run in
seconds. Weights are random with a fixed seed; one pass in training mode gives the batch norms the
statistics of their inputs, so that no activation saturates or dies before the last layer.
Quantized with the stock quantizer and configuration (int8, per channel).

Imports torch and executorch. Lowering takes about a minute a target.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

SIZE = 224
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks, stride of the first block (table 2 of the MobileNetV2 paper)."""


def _conv(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs, momentum=None)]


class Block(nn.Module):
    """Expand, depthwise, project; plus the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        first = [*_conv(inputs, wide), nn.ReLU6()] if expansion > 1 else []
        self.body = nn.Sequential(*first, *_conv(wide, wide, 3, stride, wide), nn.ReLU6(), *_conv(wide, outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        return x + y if self.residual else y


class MobileNetV2(nn.Module):
    """The whole network, logits out."""

    def __init__(self) -> None:
        super().__init__()
        layers, channels = [*_conv(3, 32, 3, 2), nn.ReLU6()], 32
        for expansion, outputs, count, stride in _STAGES:
            for number in range(count):
                layers.append(Block(channels, outputs, 1 if number else stride, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, *_conv(channels, 1280), nn.ReLU6())
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


def lowered(target: str) -> tuple[bytes, bytes]:
    """The TOSA flatbuffer and the payload of the network's one delegate.

    :param target: ``ethos-u55-128``, …
    """
    from executorch.exir import to_edge_transform_and_lower

    from harness.case.recipe import Recipe
    from harness.case.target import parse_target
    from harness.compat.capture import captured_payloads
    from harness.compat.stack import convert_pt2e, edge_config, prepare_pt2e, stack_for

    torch.manual_seed(0)
    model: Any = MobileNetV2()
    sample = (torch.rand(1, 3, SIZE, SIZE),)
    with torch.no_grad():
        model.train()(torch.rand(4, 3, SIZE, SIZE))
        model.eval()
        stack = stack_for(parse_target(target), Recipe())
        prepared = prepare_pt2e(torch.export.export(model, sample).module(check_guards=False), stack.quantizer)
        prepared(*sample)
        exported = torch.export.export(convert_pt2e(prepared), sample)
        with captured_payloads(lambda stage: None) as captured:
            to_edge_transform_and_lower(exported, partitioner=[stack.partitioner], compile_config=edge_config())
    ((payload, tosa),) = captured.tosa_of_payload.items()
    return tosa, payload
