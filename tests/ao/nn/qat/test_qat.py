"""Modules that train with rounded weights."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import qat
from flambeau.ao.quantization import (
    default_embedding_qat_qconfig,
    default_qat_qconfig,
    get_default_qat_qconfig,
)

LAYERS = {"Linear": ((3, 4), (5, 3)), "Conv1d": ((2, 3, 2), (1, 2, 5)),
          "Conv2d": ((2, 4, 3, 2, 1, 1, 2, False, "reflect"), (1, 2, 5, 5)),
          "Conv3d": ((1, 2, 2), (1, 1, 3, 3, 3))}


def made(name):
    sizes, shape = LAYERS[name]
    module = getattr(nn, name)(*sizes)
    module.qconfig = default_qat_qconfig
    return module, getattr(qat, name).from_float(module), torch.randn(*shape)


@pytest.mark.parametrize("name", LAYERS)
def test_the_weight_is_rounded_in_forward(name):
    module, layer, x = made(name)
    y = layer(x)
    scale, zero = layer.weight_fake_quant.calculate_qparams()
    rounded = torch.fake_quantize_per_tensor_affine(module.weight.detach(), float(scale),
                                                    int(zero), -128, 127)
    assert not torch.equal(rounded, module.weight)
    module.weight.data = rounded
    torch.testing.assert_close(y, module(x))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_pass_through_rounding(name):
    module, layer, x = made(name)
    layer(x).sum().backward()
    found = layer.weight.grad.clone()
    module.weight.grad = None
    module(x).sum().backward()
    scale, zero = layer.weight_fake_quant.calculate_qparams()
    steps = (module.weight / scale + zero).round()
    within = ((steps >= -128) & (steps <= 127)) | (found != 0)      # both at the very end
    assert within.sum() >= within.numel() - 1               # what is cut off gets no gradient
    torch.testing.assert_close(found, module.weight.grad * within)


@pytest.mark.parametrize("name", LAYERS)
def test_the_float_module_comes_back(name):
    module, layer, x = made(name)
    back = layer.to_float()
    assert type(back) is type(module) and repr(back) == repr(module)
    assert torch.equal(back.weight, module.weight) and torch.equal(back(x), module(x))


@pytest.mark.parametrize("name, arguments", [("Embedding", ()), ("EmbeddingBag", ([0, 2],))])
def test_tables(name, arguments):
    table = getattr(nn, name)(6, 4)
    table.qconfig = default_embedding_qat_qconfig
    layer = getattr(qat, name).from_float(table)
    indices, rest = torch.tensor([1, 5, 5]), [torch.tensor(a) for a in arguments]
    y = layer(indices, *rest)
    torch.testing.assert_close(y, table(indices, *rest), atol=0.15, rtol=0)
    assert repr(layer).startswith(f"{name}(\n  6, 4")
    back = layer.to_float()
    assert torch.equal(back.weight, table.weight)
    with pytest.raises(AssertionError, match=r"qscheme of torch.per_channel_affine_float_qparams"):
        getattr(qat, name)(6, 4, qconfig=default_qat_qconfig)


def test_a_qconfig_is_needed():
    with pytest.raises(AssertionError, match="qconfig must be provided for QAT module"):
        qat.Linear(2, 3)
    module = nn.Linear(2, 3)
    with pytest.raises(AssertionError, match="Input float module must have qconfig defined"):
        qat.Linear.from_float(module)
    module.qconfig = None
    with pytest.raises(AssertionError, match="Input float module must have a valid qconfig"):
        qat.Linear.from_float(module)
    with pytest.raises(AssertionError, match=r"qat.Conv2d.* only works for Conv2d, got Conv1d"):
        qat.Conv2d.from_float(nn.Conv1d(1, 1, 1))


def test_observers_can_look_at_each_channel():
    layer = qat.Conv2d(1, 3, 2, qconfig=get_default_qat_qconfig("x86"))
    layer(torch.randn(1, 1, 4, 4))
    assert layer.weight_fake_quant.scale.shape == (3,)
    assert {"weight", "bias", "weight_fake_quant.scale"} <= set(layer.state_dict())
