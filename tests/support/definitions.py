"""The layers of the literature written by hand as plain torch modules, straight from their definitions."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


def relu_conv_bn(c_in: int, c_out: int, kernel: int, stride: int = 1, affine: bool = True) -> nn.Sequential:
    """Return ReLU, a convolution without bias that keeps the resolution at stride 1, BN."""
    convolution = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(nn.ReLU(), convolution, nn.BatchNorm2d(c_out, affine=affine))


def dil_conv(c_in: int, c_out: int, kernel: int, stride: int, dilation: int = 2, affine: bool = True) -> nn.Sequential:
    """Return ReLU, depthwise convolution, 1x1 convolution, BN."""
    padding = dilation * (kernel - 1) // 2
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False),
        nn.Conv2d(c_in, c_out, 1, bias=False),
        nn.BatchNorm2d(c_out, affine=affine),
    )


def sep_conv(c_in: int, c_out: int, kernel: int, stride: int, affine: bool = True) -> nn.Sequential:
    """Return the above twice without dilation, the first with the stride."""
    first = dil_conv(c_in, c_in, kernel, stride, 1, affine)
    return nn.Sequential(first, dil_conv(c_in, c_out, kernel, 1, 1, affine))


class FactorizedReduce(nn.Module):
    """ReLU; 1x1 convolutions of stride 2 on x and on x[:, :, 1:, 1:]; concatenated; BN.

    The literature asks for even sizes; here an odd axis gets a row of zeros behind it, so that both halves fit.
    """

    def __init__(self, c_in: int, c_out: int, affine: bool = True):
        super().__init__()
        self.even = nn.Conv2d(c_in, c_out // 2, 1, 2, bias=False)
        self.odd = nn.Conv2d(c_in, c_out - c_out // 2, 1, 2, bias=False)
        self.norm = nn.BatchNorm2d(c_out, affine=affine)

    def forward(self, x):
        """Return half the resolution."""
        x = functional.relu(x)
        padded = functional.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2))
        return self.norm(torch.cat([self.even(x), self.odd(padded[:, :, 1:, 1:])], 1))


class ResidualDown(nn.Module):
    """Two ReLU-Conv-BN, the first of stride 2, plus a 2x2 mean and a 1x1 convolution without BN.

    On an axis of odd size the windows of the mean begin one position early.
    """

    def __init__(self, c_in: int, c_out: int):
        super().__init__()
        self.body = nn.Sequential(relu_conv_bn(c_in, c_out, 3, 2), relu_conv_bn(c_out, c_out, 3))
        self.shortcut = nn.Conv2d(c_in, c_out, 1, bias=False)

    def forward(self, x):
        """Return half the resolution."""
        odd = (x.shape[2] % 2, x.shape[3] % 2)
        mean = functional.avg_pool2d(x, 2, 2, odd, count_include_pad=False)
        return self.shortcut(mean) + self.body(x)


class ReductionThenNormal(nn.Module):
    """A stem, a reduction cell and a normal cell in the manner of DARTS, each of two nodes, 6 channels, then 8."""

    def __init__(self, c_in: int, channels: int = 4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(c_in, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.before, self.last = relu_conv_bn(channels, 6, 1), relu_conv_bn(channels, 6, 1)
        self.skip, self.sep = FactorizedReduce(6, 6), sep_conv(6, 6, 3, 1)
        self.before_2, self.last_2 = FactorizedReduce(channels, 8), relu_conv_bn(12, 8, 1)
        self.dil = dil_conv(8, 8, 3, 1)

    def forward(self, x):
        """Return the concatenated nodes of the second cell."""
        stem = self.stem(x)
        first, second = self.before(stem), self.last(stem)
        node2 = functional.max_pool2d(first, 3, 2, 1) + self.skip(second)
        node3 = self.sep(node2) + functional.max_pool2d(second, 3, 2, 1)
        reduced = torch.cat([node2, node3], 1)
        first, second = self.before_2(stem), self.last_2(reduced)
        node2 = first + second
        node3 = self.dil(node2) + functional.avg_pool2d(first, 3, 1, 1, count_include_pad=False)
        return torch.cat([node2, node3], 1)


class AuxiliaryHead(nn.Module):
    """ReLU, 5x5 mean, 1x1 convolution, BN, ReLU, 2x2 convolution, BN, ReLU, linear."""

    def __init__(self, c_in: int, classes: int, stride: int = 3, norm: bool = True):
        super().__init__()
        self.features = nn.Sequential(
            nn.ReLU(),
            nn.AvgPool2d(5, stride, 0, count_include_pad=False),
            nn.Conv2d(c_in, 128, 1, bias=False),
            nn.BatchNorm2d(128),
            nn.ReLU(),
            nn.Conv2d(128, 768, 2, bias=False),
            *((nn.BatchNorm2d(768),) if norm else ()),
            nn.ReLU(),
        )
        self.classify = nn.Linear(768, classes)

    def forward(self, x):
        """Return logits."""
        return self.classify(self.features(x).flatten(1))
