"""Spiking neurons of norse: sequences, lifting, surrogate gradients."""
# needs: norse
import json

import norse.torch as norse
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(8, 4, 6)
result = {}
for name, cell in {"lif": norse.LIFCell(), "refractory": norse.LIFRefracCell(),
                   "izhikevich": norse.IzhikevichCell(norse.functional.izhikevich.tonic_spiking),
                   "lsnn": norse.LSNNCell()}.items():
    torch.manual_seed(1)
    model = norse.SequentialState(nn.Linear(6, 5), cell, nn.Linear(5, 3), norse.LICell())
    state, outputs = None, []
    for step in x * 20:
        out, state = model(step, state)
        outputs.append(out)
    loss = torch.stack(outputs).square().mean()
    loss.backward()
    result[name] = [loss.item(), *(p.grad.norm().item() for p in model.parameters())]
lifted = norse.Lift(nn.Conv2d(1, 2, 3))(torch.rand(3, 2, 1, 5, 5))
recurrent = norse.LIFRecurrent(6, 4)(x * 20)[0]
result["lifted"] = [list(lifted.shape), lifted.sum().item()]
result["recurrent"] = recurrent.sum().item()
result["encoded"] = norse.PopulationEncoder(5)(torch.tensor([0.2, 0.7])).flatten().tolist()
print(json.dumps(result))
