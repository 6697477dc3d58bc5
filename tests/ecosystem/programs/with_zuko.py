"""Normalising flows: spline, autoregressive, continuous and mixture flows learn two moons."""
# needs: zuko
import json

import torch
import zuko

torch.manual_seed(0)
angle = torch.rand(128) * torch.pi
upper = torch.rand(128) < 0.5
moons = torch.stack([torch.where(upper, angle.cos(), 1 - angle.cos()),
                     torch.where(upper, angle.sin(), 0.5 - angle.sin())], 1)
moons += 0.05 * torch.randn(128, 2)
result = {}
for name, flow in {
        "nsf": zuko.flows.NSF(2, transforms=2, hidden_features=[16]),
        "maf": zuko.flows.MAF(2, context=1, transforms=2, hidden_features=[16]),
        "nice": zuko.flows.NICE(2, transforms=2, hidden_features=[16]),
        "gmm": zuko.flows.GMM(2, components=3),
        "naf": zuko.flows.NAF(2, transforms=1, signal=4, hidden_features=[16]),
        "cnf": zuko.flows.CNF(2, hidden_features=[8]),
        "bpf": zuko.flows.BPF(2, transforms=1, hidden_features=[16]),
}.items():
    context = upper.float()[:, None] if name == "maf" else None
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        loss = -flow(context).log_prob(moons).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    result[name] = losses
    if name not in {"gmm", "naf"}:
        with torch.no_grad():
            distribution = flow(None if context is None else context[0])
            sample = distribution.sample((3,))
            result[f"{name} sample"] = sample.flatten().tolist()
            result[f"{name} density"] = distribution.log_prob(sample).tolist()
print(json.dumps(result))
