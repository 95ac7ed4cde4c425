"""Seed report 001, a convolution whose relu feeds a cat: executorch 1.2.0 raises, 1.5.1 returns wrong values.

Example: armdiff check docs/examples/seed001.py --target TOSA-1.0+INT --recipe a8w8,qmin=-127
"""

import torch


class ConvReluCat(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = torch.nn.Conv2d(8, 4, 1)
        for parameter in self.parameters():
            torch.nn.init.uniform_(parameter, -0.1, 0.1)

    def forward(self, x, y):
        return self.conv2(torch.cat([torch.relu(self.conv1(x)), y], 1))


torch.manual_seed(0)
model = ConvReluCat().eval()
# The smallest y is below zero. The relu shares the domain of the cat, so its zero point is above qmin.
calibration = [(torch.rand(1, 4, 16, 16), torch.rand(1, 4, 16, 16) - 0.065)]
