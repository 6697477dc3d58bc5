"""Training with quantised weights and activations."""
# needs: brevitas
import json
import warnings

warnings.simplefilter("ignore")

import brevitas.nn as qnn
import torch
from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    qnn.QuantIdentity(bit_width=8, return_quant_tensor=False),
    qnn.QuantConv2d(1, 4, 3, weight_bit_width=4),
    qnn.QuantReLU(bit_width=4), nn.Flatten(),
    qnn.QuantLinear(144, 3, bias=True, weight_quant=Int8WeightPerChannelFloat,
                    input_quant=Int8ActPerTensorFloat))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y, losses = torch.rand(8, 1, 8, 8), torch.arange(8) % 3, []
for _ in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
weight = model[1].quant_weight()
print(json.dumps({"losses": losses, "scale": weight.scale.flatten().tolist(),
                  "integers": weight.int().flatten()[:12].tolist(),
                  "out": model(x).detach().flatten()[:6].tolist()}))
