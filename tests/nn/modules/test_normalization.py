"""Normalization over layers, groups and neighbours."""
import pytest
from module_tests import ModuleTests
from nn_cases import Cases

import flambeau as torch
from flambeau import nn

cases = Cases()
IMAGES = {1: (4, 6, 5), 2: (3, 6, 4, 2)}
cases("LayerNorm", lambda t: t.nn.LayerNorm(5), IMAGES[1])
cases("LayerNorm-2D", lambda t: t.nn.LayerNorm((6, 5), eps=1e-3, bias=False), IMAGES[1])
cases("LayerNorm-plain", lambda t: t.nn.LayerNorm(5, elementwise_affine=False), IMAGES[1])
cases("RMSNorm", lambda t: t.nn.RMSNorm(5), IMAGES[1])
cases("RMSNorm-options", lambda t: t.nn.RMSNorm([6, 5], 1e-3, False), IMAGES[1])
cases("GroupNorm", lambda t: t.nn.GroupNorm(3, 6), IMAGES[2])
cases("GroupNorm-plain", lambda t: t.nn.GroupNorm(2, 6, affine=False), IMAGES[1])
cases("GroupNorm-no-bias", lambda t: t.nn.GroupNorm(2, 6, bias=False), IMAGES[1])
cases("LocalResponseNorm", lambda t: t.nn.LocalResponseNorm(3, 0.1), IMAGES[2])
cases("CrossMapLRN2d", lambda t: t.nn.CrossMapLRN2d(3, 0.1), IMAGES[2])
cases("CrossMapLRN2d-even", lambda t: t.nn.CrossMapLRN2d(4, 0.1), IMAGES[2])


class TestLayers(ModuleTests):
    cases = cases


def test_channels_are_normalized_in_the_order_of_rows():
    x = torch.rand(2, 4, 3, 5).to(memory_format=torch.channels_last).requires_grad_()
    result = nn.CrossMapLRN2d(3)(x)
    assert result.is_contiguous()
    result.sum().backward()
    assert x.grad.is_contiguous(memory_format=torch.channels_last)


def test_what_is_normalized_has_mean_0_and_variance_1():
    x = 3 * torch.randn(4, 6, 8, dtype=torch.float64) + 2
    layer = nn.LayerNorm((6, 8), eps=0, dtype=torch.float64)(x)
    group = nn.GroupNorm(3, 6, eps=0, dtype=torch.float64)(x).reshape(4, 3, -1)
    for found, dims in ((layer, (1, 2)), (group, 2)):
        assert found.mean(dims).abs().max() < 1e-12
        torch.testing.assert_close(found.var(dims, correction=0), torch.ones_like(found.mean(dims)))
    square = nn.RMSNorm(8, eps=0, dtype=torch.float64)(x).square().mean(-1)
    torch.testing.assert_close(square, torch.ones_like(square))


@pytest.mark.parametrize("make, message", [
    (lambda: nn.GroupNorm(4, 6), r"num_channels \(6\) must be divisible by num_groups"),
    (lambda: nn.CrossMapLRN2d(2)(torch.rand(2, 3)), "Expected input to be 4D, got 2D instead")])
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_shapes_that_do_not_fit():
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3\], expected input with"):
        nn.LayerNorm(3)(torch.rand(2, 4))
