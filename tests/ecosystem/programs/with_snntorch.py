"""Spiking networks: leaky, synaptic and recurrent neurons trained with surrogate gradients."""
# needs: snntorch
import json

import snntorch as snn
import torch
from snntorch import functional as SF
from snntorch import spikegen, surrogate, utils
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(16, 10), torch.arange(16) % 3
result = {}
gradient = surrogate.fast_sigmoid(slope=25)
for name, neuron in {
        "leaky": snn.Leaky(beta=0.9, spike_grad=gradient, init_hidden=True, learn_beta=True),
        "synaptic": snn.Synaptic(alpha=0.8, beta=0.9, spike_grad=surrogate.atan(),
                                 init_hidden=True),
        "alpha": snn.Alpha(alpha=0.9, beta=0.8, init_hidden=True),
        "recurrent": snn.RLeaky(beta=0.9, linear_features=8, init_hidden=True),
        "lapicque": snn.Lapicque(beta=0.8, init_hidden=True)}.items():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(10, 8), neuron, nn.Linear(8, 3),
                          snn.Leaky(beta=0.8, init_hidden=True, output=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        utils.reset(model)
        spikes, membranes = zip(*[model(x) for _ in range(6)])
        loss = SF.ce_rate_loss()(torch.stack(membranes), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    result[name] = [*losses, torch.stack(spikes).sum().item()]
torch.manual_seed(2)
result["rate"] = spikegen.rate(x, num_steps=5).sum().item()
result["latency"] = spikegen.latency(x, num_steps=5, normalize=True, linear=True).sum(
    (1, 2)).tolist()
result["delta"] = spikegen.delta(x, threshold=0.3).sum().item()
result["accuracy"] = float(SF.accuracy_rate(torch.stack(spikes), y))
print(json.dumps(result))
