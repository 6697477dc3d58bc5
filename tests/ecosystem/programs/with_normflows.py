"""Flows from normflows: Real NVP, neural splines, residual flows and Glow."""
# needs: normflows
import json

import normflows as nf
import torch

torch.set_default_dtype(torch.float64)      # in float32 Adam makes much of rounding errors
torch.manual_seed(0)
target = nf.distributions.TwoMoons()
result = {"target": target.log_prob(torch.tensor([[1.0, 0.5], [-1.0, 2.0]])).tolist()}
x = torch.randn(48, 2) * 0.3 + 1


def train(model, x, steps=4):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(steps):
        loss = model.forward_kld(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


flows = []
for _ in range(2):
    flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 16, 2], init_zeros=True)),
              nf.flows.Permute(2, mode="swap"), nf.flows.ActNorm(2)]
model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), flows, target)
result["real nvp"] = train(model, x)
result["reverse"] = model.reverse_kld(16).item()
splines = [nf.flows.CoupledRationalQuadraticSpline(2, 1, 8), nf.flows.LULinearPermute(2)]
model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), splines)
result["spline"] = train(model, x)
result["samples"] = model.sample(3)[0].flatten().tolist()
network = nf.nets.LipschitzMLP([2, 8, 2], init_zeros=True, lipschitz_const=0.9)
residual = [nf.flows.Residual(network, reduce_memory=True)]
model = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), residual)
result["residual"] = train(model, x, 2)
glow = nf.NormalizingFlow(
    nf.distributions.GlowBase((3, 4, 4)),
    [nf.flows.GlowBlock(3, 8, scale=True) if False else nf.flows.Invertible1x1Conv(3),
     nf.flows.ActNorm((3, 1, 1))])
result["glow"] = train(glow, torch.rand(4, 3, 4, 4))
print(json.dumps(result))
