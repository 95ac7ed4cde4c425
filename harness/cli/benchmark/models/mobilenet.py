"""The beginning of a MobileNetV2, narrow: a stem, three inverted residual blocks and a classifier."""

import torch
from torch import nn


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs, momentum=None)]


class Inverted(nn.Module):
    """Expand, depthwise, project; plus the input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        wide = inputs * 4
        self.body = nn.Sequential(
            *convolution(inputs, wide),
            nn.ReLU6(),
            *convolution(wide, wide, 3, stride, wide),
            nn.ReLU6(),
            *convolution(wide, outputs),
        )
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.residual else self.body(x)


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *convolution(3, 8, 3, 2), nn.ReLU6(), Inverted(8, 8, 1), Inverted(8, 12, 2), Inverted(12, 12, 1)
        )
        self.classifier = nn.Linear(12, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


torch.manual_seed(0)
model = MobileNet()
with torch.no_grad():
    model.train()(torch.rand(4, 3, 32, 32))
calibration = [(torch.rand(1, 3, 32, 32),) for _ in range(2)]
