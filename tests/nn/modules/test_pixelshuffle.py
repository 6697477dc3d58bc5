"""Channels that become pixels, and back."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases

import flambeau as torch
from flambeau import nn

cases = Cases()
cases("PixelShuffle", lambda t: t.nn.PixelShuffle(2), (2, 8, 3, 2))
cases("PixelUnshuffle", lambda t: t.nn.PixelUnshuffle(2), (2, 2, 4, 6))


class TestLayers(ModuleTests):
    cases = cases


@pytest.mark.parametrize("layer", [nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2)])
def test_channels_stay_last(layer):
    x = torch.rand(2, 8, 4, 6)
    found = layer(x.to(memory_format=torch.channels_last))
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found, layer(x)) and layer(x).is_contiguous()


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_there_and_back(factor):
    x = torch.rand(2, 3, 4 * factor, 2 * factor)
    there = nn.PixelUnshuffle(factor)(x)
    assert there.shape == (2, 3 * factor**2, 4, 2)
    assert torch.equal(nn.PixelShuffle(factor)(there), x)
    assert torch.equal(there[:, 0], x[:, 0, ::factor, ::factor])


def test_sizes_that_do_not_divide():
    with pytest.raises(RuntimeError, match=r"input.size.-3.=3 is not divisible by 4"):
        nn.PixelShuffle(2)(torch.rand(1, 3, 2, 2))
    with pytest.raises(RuntimeError, match="expects height to be divisible by downscale_factor"):
        nn.PixelUnshuffle(2)(torch.rand(1, 3, 3, 2))
