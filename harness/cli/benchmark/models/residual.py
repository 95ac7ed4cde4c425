"""A residual block: two convolutions with batch norms, and their input added."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels, momentum=None),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels, momentum=None),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


torch.manual_seed(0)
model = Residual(16)
with torch.no_grad():
    model.train()(torch.randn(4, 16, 16, 16))
calibration = [(torch.randn(1, 16, 16, 16),) for _ in range(2)]
