"""Meta-learning: gradients through the steps of an optimiser."""
# needs: higher
import json

import higher
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
x, y = torch.randn(10, 3), torch.randn(10, 1)
result = {}
for name, inner in {"sgd": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                    "adam": torch.optim.Adam(model.parameters(), lr=0.01),
                    "rmsprop": torch.optim.RMSprop(model.parameters(), lr=0.01)}.items():
    model.zero_grad()
    with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (functional, steps):
        losses = []
        for _ in range(3):
            loss = nn.functional.mse_loss(functional(x[:5]), y[:5])
            steps.step(loss)
            losses.append(loss.item())
        outer = nn.functional.mse_loss(functional(x[5:]), y[5:])
        outer.backward()
    result[name] = [*losses, outer.item(), *(p.grad.norm().item() for p in model.parameters())]
rate = torch.tensor(0.1, requires_grad=True)
with higher.innerloop_ctx(model, torch.optim.SGD(model.parameters(), lr=0.1),
                          override={"lr": [rate]}) as (functional, steps):
    steps.step(nn.functional.mse_loss(functional(x), y))
    nn.functional.mse_loss(functional(x), y).backward()
result["rate"] = rate.grad.item()
print(json.dumps(result))
