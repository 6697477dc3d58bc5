"""Batch norm folded into the layer before it."""
import pytest
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn


class TestScripts(ScriptTests):
    topics = ("utils/fusion",)


@pytest.mark.parametrize("layer, norm, shape", [
    (nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), (4, 2, 5)),
    (nn.Conv2d(2, 4, 2, groups=2), nn.BatchNorm2d(4), (4, 2, 5, 5)),
    (nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3), (4, 2, 5, 5)),
    (nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3, affine=False), (4, 2, 5, 5))])
def test_one_layer_in_place_of_two(layer, norm, shape):
    torch.manual_seed(0)
    both = nn.Sequential(layer, norm).double()
    x = torch.randn(shape, dtype=torch.float64)
    both(x)                                             # fills the statistics
    transpose = isinstance(layer, nn.ConvTranspose2d)
    one = nn.utils.fuse_conv_bn_eval(layer.eval(), norm.eval(), transpose)
    torch.testing.assert_close(one(x), both.eval()(x))
    assert one is not layer and type(one) is type(layer)


def test_without_statistics_there_is_nothing_to_fold():
    norm = nn.BatchNorm2d(3, track_running_stats=False)
    with pytest.raises(AssertionError, match="running_var must not be None"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(2, 3, 1).eval(), norm.eval())
