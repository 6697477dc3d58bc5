"""Weights and activations of few bits, training that foresees them, optimizers with 8-bit and 4-bit
states, and a file of quantised weights."""
# needs: torchao
import io
import json

import torch
from torch import nn
from torchao import optim
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.qat import Int8DynActInt4WeightQATQuantizer, QATConfig

x = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16))


def first(tensor):
    return tensor.flatten()[:6].tolist()


result = {}
groups = {"weight_dtype": torch.int4}
for name, config in {
        "weights of 8 bits": Int8WeightOnlyConfig(),
        "all of 8 bits": Int8DynamicActivationInt8WeightConfig(),
        "8-bit floats": Float8WeightOnlyConfig(),
        "weights of 4 bits": IntxWeightOnlyConfig(granularity=PerGroup(32), **groups),
        "8 and 4 bits": Int8DynamicActivationIntxWeightConfig(
            weight_granularity=PerGroup(32), **groups)}.items():
    network = model()
    quantize_(network, config)
    with torch.no_grad():
        result[name] = [type(network[0].weight).__name__, first(network(x))]

for kind in ("Adam8bit", "AdamW8bit", "Adam4bit", "AdamW4bit", "_AdamW"):
    network = model()
    optimizer = getattr(optim, kind)(network.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        network(x).square().mean().backward()
        optimizer.step()
    result[kind] = first(network[0].weight)

network = model()
quantize_(network, QATConfig(Int8DynamicActivationIntxWeightConfig(
    weight_granularity=PerGroup(32), **groups), step="prepare"))
network(x).sum().backward()
result["foreseen"] = [type(network[0]).__name__, first(network[0].weight.grad)]
quantizer = Int8DynActInt4WeightQATQuantizer(groupsize=32)
network = quantizer.prepare(model())
network(x).sum().backward()
gradient = first(network[0].weight.grad)
result["converted"] = [gradient, first(quantizer.convert(network)(x))]

network, file = model(), io.BytesIO()
quantize_(network, Int8WeightOnlyConfig())
torch.save(network.state_dict(), file)
file.seek(0)
loaded = model()
loaded.load_state_dict(torch.load(file), assign=True)
result["loaded"] = torch.equal(network(x), loaded(x))
print(json.dumps(result))
