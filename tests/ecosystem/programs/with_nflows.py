"""Flows from nflows: masked autoregressive affine and rational quadratic spline transforms."""
# needs: nflows
import json

import torch
from nflows.distributions import ConditionalDiagonalNormal, StandardNormal
from nflows.flows import Flow, SimpleRealNVP
from nflows.transforms import (
    ActNorm,
    CompositeTransform,
    LULinear,
    MaskedAffineAutoregressiveTransform,
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
    RandomPermutation,
)

torch.manual_seed(0)
x = torch.randn(64, 3) @ torch.tensor([[1.0, 0.5, 0.0], [0.0, 1.0, -0.5], [0.3, 0.0, 1.0]])
c = x[:, :1].tanh()
transform = CompositeTransform([
    ActNorm(3), LULinear(3), MaskedAffineAutoregressiveTransform(3, 12, context_features=1),
    RandomPermutation(3),
    MaskedPiecewiseRationalQuadraticAutoregressiveTransform(
        3, 12, context_features=1, num_bins=4, tails="linear", tail_bound=3.0)])
flow = Flow(transform, ConditionalDiagonalNormal([3], torch.nn.Linear(1, 6)))
real = SimpleRealNVP(3, 12, 2, 1, batch_norm_between_layers=True)
result = {}
for name, model, context in (("flow", flow, c), ("real", real, None)):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    losses = []
    for _ in range(6):
        loss = -model.log_prob(x, context=context).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        noise = model.transform_to_noise(x[:2], context=None if context is None else c[:2])
        sample = model.sample(2, None if context is None else c[:1])
    result[name] = {"losses": losses, "noise": noise.flatten().tolist(),
                    "sample": sample.flatten().tolist()}
result["normal"] = StandardNormal([2]).log_prob(torch.ones(1, 2)).item()
print(json.dumps(result))
