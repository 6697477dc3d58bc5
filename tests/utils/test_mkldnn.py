"""Layers in the opaque layout."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.utils import mkldnn

IMAGE = torch.linspace(-1, 1, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6)


@pytest.mark.parametrize("layer, x", [
    (nn.Linear(6, 2), IMAGE[0, 0]), (nn.Conv1d(3, 4, 2), IMAGE[:, :, 0]),
    (nn.Conv2d(3, 4, 3, padding=1, stride=2), IMAGE), (nn.Conv2d(3, 3, 3, groups=3), IMAGE),
    (nn.Conv2d(3, 4, 1, bias=False), IMAGE), (nn.BatchNorm2d(3).eval(), IMAGE),
    (nn.PReLU(), IMAGE), (nn.Conv3d(2, 2, 2), IMAGE.reshape(2, 2, 3, 3, 6)[:, :, :, :, :6]),
], ids=lambda value: type(value).__name__)
def test_layers_compute_the_same(layer, x):
    with torch.no_grad():
        opaque = mkldnn.to_mkldnn(layer)
        torch.testing.assert_close(opaque(x.to_mkldnn()).to_dense(), layer(x),
                                   rtol=1e-4, atol=1e-5)


def test_layers_of_a_network_are_replaced():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Sequential(nn.Linear(64, 2))).eval()
    made = mkldnn.to_mkldnn(net)
    assert made is net and type(net[1]) is nn.ReLU
    assert type(net[0]).__name__ == "MkldnnConv2d" and net[0].weight.is_mkldnn
    assert type(net[2][0]).__name__ == "MkldnnLinear"


def test_misuse():
    with pytest.raises(AssertionError):
        mkldnn.to_mkldnn(nn.Linear(2, 2), torch.float64)
    with pytest.raises(AssertionError):
        mkldnn.to_mkldnn(nn.BatchNorm2d(3))
