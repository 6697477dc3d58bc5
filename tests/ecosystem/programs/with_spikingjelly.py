"""SpikingJelly: neurons and layers in one step and in many, learnable time constants."""
# needs: spikingjelly
import json

import torch
from spikingjelly.activation_based import encoding, functional, layer, neuron, surrogate
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(4, 1, 8, 8), torch.arange(4) % 2
result = {}
for name, make in {"if": neuron.IFNode, "lif": neuron.LIFNode, "plif": neuron.ParametricLIFNode,
                   "qif": neuron.QIFNode, "eif": neuron.EIFNode}.items():
    torch.manual_seed(1)
    model = nn.Sequential(
        layer.Conv2d(1, 4, 3, step_mode="m"), layer.BatchNorm2d(4, step_mode="m"),
        make(surrogate_function=surrogate.ATan(), step_mode="m"), layer.MaxPool2d(2, step_mode="m"),
        layer.Flatten(step_mode="m"), layer.Linear(36, 2, step_mode="m"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        out = model(x.unsqueeze(0).repeat(5, 1, 1, 1, 1)).mean(0)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        functional.reset_net(model)
        losses.append(loss.item())
    result[name] = losses
torch.manual_seed(2)
result["encoded"] = encoding.PoissonEncoder()(x).sum().item()
print(json.dumps(result))
