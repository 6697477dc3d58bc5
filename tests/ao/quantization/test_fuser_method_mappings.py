"""How modules in a row become one."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic
from flambeau.ao.quantization import (
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_linear_bn,
    get_fuser_method,
)
from flambeau.ao.quantization.fuser_method_mappings import fuse_convtranspose_bn


def trained(kind, features=4):
    bn = kind(features)
    bn.running_mean.uniform_(-1, 1)
    bn.running_var.uniform_(0.5, 2)
    nn.init.uniform_(bn.weight, 0.5, 2)
    nn.init.uniform_(bn.bias)
    return bn


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_convolution_does_what_both_did(n):
    conv = getattr(nn, f"Conv{n}d")(2, 4, 2).eval()
    bn = trained(getattr(nn, f"BatchNorm{n}d")).eval()
    x = torch.randn(2, 2, *(4,) * n)
    found = fuse_conv_bn(False, conv, bn)
    assert type(found) is type(conv) and found is not conv
    torch.testing.assert_close(found(x), bn(conv(x)), atol=1e-5, rtol=1e-4)
    both = fuse_conv_bn_relu(False, conv, bn, nn.ReLU().eval())
    assert type(both).__name__ == f"ConvReLU{n}d"
    torch.testing.assert_close(both(x), bn(conv(x)).relu(), atol=1e-5, rtol=1e-4)


def test_for_training_they_stay_in_a_row():
    conv, bn, relu = nn.Conv2d(2, 4, 2), nn.BatchNorm2d(4), nn.ReLU()
    assert list(fuse_conv_bn(True, conv, bn)) == [conv, bn]
    row = fuse_conv_bn_relu(True, conv, bn, relu)
    assert type(row) is intrinsic.ConvBnReLU2d and list(row) == [conv, bn, relu]
    linear, norm = nn.Linear(2, 4), nn.BatchNorm1d(4)
    assert type(fuse_linear_bn(True, linear, norm)) is intrinsic.LinearBn1d


def test_a_linear_map_and_a_transposed_convolution():
    linear, bn, x = nn.Linear(3, 4).eval(), trained(nn.BatchNorm1d).eval(), torch.randn(5, 3)
    torch.testing.assert_close(fuse_linear_bn(False, linear, bn)(x), bn(linear(x)), atol=1e-5,
                               rtol=1e-4)
    conv, bn, x = nn.ConvTranspose2d(3, 4, 2).eval(), trained(nn.BatchNorm2d).eval(), \
        torch.randn(1, 3, 4, 4)
    torch.testing.assert_close(fuse_convtranspose_bn(False, conv, bn)(x), bn(conv(x)), atol=1e-5,
                               rtol=1e-4)
    with pytest.raises(Exception, match=r"Fusing ConvTranspose\+BatchNorm not yet supported"):
        fuse_convtranspose_bn(True, conv, bn)


@pytest.mark.parametrize("conv, bn, message", [
    (nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3), "Output channel of Conv2d must match num_features"),
    (nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, affine=False), "affine set to True"),
    (nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2, track_running_stats=False), "tracking_running_stats"),
    (nn.Conv2d(1, 2, 1).eval(), nn.BatchNorm2d(2), "must be in the same mode")])
def test_what_does_not_fit(conv, bn, message):
    with pytest.raises(AssertionError, match=message):
        fuse_conv_bn(True, conv, bn)


@pytest.mark.parametrize("row, name", [
    ((nn.Conv2d, nn.BatchNorm2d), "fuse_conv_bn"),
    ((nn.Conv1d, nn.BatchNorm1d, nn.ReLU), "fuse_conv_bn_relu"),
    ((nn.Linear, nn.BatchNorm1d), "fuse_linear_bn"),
    ((nn.ConvTranspose3d, nn.BatchNorm3d), "fuse_convtranspose_bn")])
def test_the_method_for_a_row(row, name):
    assert get_fuser_method(row).__name__ == name


def test_more_methods():
    row = get_fuser_method((nn.Linear, nn.ReLU))(False, nn.Linear(1, 1), nn.ReLU())
    assert type(row) is intrinsic.LinearReLU
    mine = {(nn.Linear, nn.Tanh): max}
    assert get_fuser_method((nn.Linear, nn.Tanh), mine) is max
    with pytest.raises(AssertionError, match="did not find fuser method for"):
        get_fuser_method((nn.Linear, nn.Tanh))
