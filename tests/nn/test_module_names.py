"""Modules under the names that PyTorch has for parts of what is one module here."""
import importlib

import pytest

MODULES = {
    "nn.parallel.replicate": "replicate", "signal.windows.windows": "cosine hann",
    "masked.maskedtensor.core": "MaskedTensor", "masked.maskedtensor.creation": "masked_tensor",
    "nn.quantized.dynamic.modules.linear": "Linear", "nn.qat.modules.conv": "Conv2d",
    "nn.intrinsic.qat.modules.conv_fused": "ConvBn2d", "nn.quantizable.modules.rnn": "LSTM",
    "nn.intrinsic.quantized.modules.bn_relu": "BNReLU2d", "accelerator.memory": "memory_stats",
    "ao.nn.quantized.reference.modules.linear": "Linear", "xpu.streams": "Stream"}


@pytest.mark.parametrize("name", MODULES)
def test_contents_are_those_of_the_whole(name):
    part = importlib.import_module(f"flambeau.{name}")
    assert all(hasattr(part, each) for each in MODULES[name].split())


def test_import_statements_find_them():
    import flambeau.ao.nn.intrinsic.qat.modules.conv_fused as fused
    from flambeau.nn.parallel.replicate import replicate as same

    from flambeau.nn.parallel import replicate
    assert callable(replicate) and same is replicate and fused.ConvBn1d


def test_layers_are_found_where_they_say_they_are():
    from flambeau import nn
    layers = [v for v in vars(nn).values() if isinstance(v, type) and issubclass(v, nn.Module)]
    assert len(layers) > 150
    for layer in layers:
        assert getattr(importlib.import_module(layer.__module__), layer.__name__) is layer
    assert nn.LinearCrossEntropyLoss.__module__.endswith("nn.modules.loss")
