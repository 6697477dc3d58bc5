"""Scripted modules, quantised."""
import warnings

import pytest

import flambeau as torch
from flambeau.ao import quantization as Q

X = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, 1.0]])


def test_scripted_modules():
    """They are quantised as graphs, by name of submodule."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2),
                                torch.nn.ReLU()).eval()
    x, scripted = torch.randn(1, 1, 5, 5), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(model)
    assert torch.allclose(Q.fuse_conv_bn_jit(scripted)(x), model(x), atol=1e-6)
    config = {"": Q.default_qconfig}
    quantized = Q.quantize_jit(scripted, config, lambda m, v: m(v), [x])
    assert isinstance(quantized, torch.jit.ScriptModule)
    assert (quantized(x) - model(x)).abs().max() < 0.05 * model(x).abs().max()
    assert Q.script_qconfig(Q.default_qconfig).activation(X) is X
    with pytest.raises(ValueError, match="script"):
        Q.prepare_jit(model, config)
