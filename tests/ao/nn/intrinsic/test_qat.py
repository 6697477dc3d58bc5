"""Convolutions and linear maps with batch normalisation that train with rounded weights."""

import pytest

import flambeau as torch
from flambeau.ao.nn.intrinsic import qat
from flambeau.ao.quantization import get_default_qat_qconfig

QCONFIG = get_default_qat_qconfig("x86")
KINDS = [qat.ConvBn1d, qat.ConvBnReLU1d, qat.ConvBn2d, qat.ConvBnReLU2d, qat.ConvBn3d]


@pytest.mark.parametrize("kind", [qat.ConvBn2d, qat.ConvBnReLU2d])
@pytest.mark.parametrize("bias, following", [(None, 0.6816085577011108),
                                              (True, 0.39709991216659546)])
def test_draws_as_many_numbers_as_pytorch(kind, bias, following):
    """The weight, the scale of batch normalisation, the bias: what comes next says how many."""
    torch.manual_seed(0)
    kind(1, 2, 3, bias=bias, qconfig=QCONFIG)
    assert torch.rand(1).item() == following


@pytest.mark.parametrize("kind", KINDS)
def test_reset_bn_parameters(kind):
    layer = kind(2, 3, 2, bias=True, qconfig=QCONFIG)
    bound = 1 / layer.weight[0].numel() ** 0.5
    with torch.no_grad():
        layer.bn.running_mean.fill_(7)
        layer.bn.bias.fill_(7)
        layer.bn.weight.fill_(7)
        layer.bias.fill_(7)
    layer.reset_bn_parameters()
    assert (layer.bn.running_mean == 0).all() and (layer.bn.bias == 0).all()
    assert ((layer.bn.weight >= 0) & (layer.bn.weight < 1)).all()
    assert (layer.bias.abs() <= bound).all()


def test_linear_keeps_its_bias():
    layer = qat.LinearBn1d(2, 3, qconfig=QCONFIG)
    bias = layer.bias.detach().clone()
    layer.reset_bn_parameters()
    assert torch.equal(layer.bias, bias)
    assert (layer.bn.weight < 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_can_be_frozen(kind):
    layer = kind(2, 3, 2, qconfig=QCONFIG)
    assert layer.bn.training
    layer.apply(qat.freeze_bn_stats)
    assert not layer.bn.training and layer.freeze_bn
    layer.train()
    assert not layer.bn.training
    layer.apply(qat.update_bn_stats)
    assert layer.bn.training
