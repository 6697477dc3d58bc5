"""Weights of convolutions in another memory format."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import utils


@pytest.mark.parametrize("convert, kind, layers", [
    (utils.convert_conv2d_weight_memory_format, torch.channels_last,
     (nn.Conv2d, nn.ConvTranspose2d)),
    (utils.convert_conv3d_weight_memory_format, torch.channels_last_3d,
     (nn.Conv3d, nn.ConvTranspose3d))])
def test_only_these_weights_move(convert, kind, layers):
    net = nn.Sequential(*(layer(2, 2, 3) for layer in (nn.Conv2d, nn.ConvTranspose2d, nn.Conv3d,
                                                      nn.ConvTranspose3d, nn.Conv1d)))
    before = [layer.weight for layer in net]
    values = [weight.detach().clone() for weight in before]
    assert convert(net, kind) is net
    for layer, weight, value in zip(net, before, values):
        assert layer.weight is weight and torch.equal(weight, value)
        moved = isinstance(layer, layers)
        assert layer.weight.is_contiguous() is not moved
        assert not moved or layer.weight.is_contiguous(memory_format=kind)


def test_results_stay_and_come_in_the_format():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ConvTranspose2d(3, 2, 3)))
    x = torch.rand(1, 2, 6, 6)
    before = net(x)
    utils.convert_conv2d_weight_memory_format(net, torch.channels_last)
    after = net(x)
    torch.testing.assert_close(after, before)
    assert after.is_contiguous(memory_format=torch.channels_last)
