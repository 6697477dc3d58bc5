"""Stochastic differential equations: solvers, the adjoint, Brownian motion on an interval."""
# needs: torchsde
import json

import torch
import torchsde
from torch import nn


class Equation(nn.Module):
    def __init__(self, noise_type, sde_type, size=3):
        super().__init__()
        self.noise_type, self.sde_type = noise_type, sde_type
        self.drift, self.noise = nn.Linear(size, size), nn.Linear(size, size)
        self.size = size

    def f(self, t, y):
        return self.drift(y).tanh()

    def g(self, t, y):
        scale = self.noise(y).sigmoid()
        if self.noise_type == "diagonal":
            return scale
        return scale.unsqueeze(-1) * torch.ones(2)

    def h(self, t, y):
        return -y


torch.manual_seed(0)
y, times = torch.rand(4, 3), torch.linspace(0, 1, 5)
result = {}
for noise, kind, method in (("diagonal", "ito", "euler"), ("diagonal", "ito", "milstein"),
                            ("diagonal", "ito", "srk"), ("diagonal", "stratonovich", "heun"),
                            ("general", "stratonovich", "midpoint"), ("general", "ito", "euler"),
                            ("diagonal", "stratonovich", "reversible_heun")):
    torch.manual_seed(1)
    equation = Equation(noise, kind)
    motion = torchsde.BrownianInterval(0.0, 1.0, (4, 3 if noise == "diagonal" else 2), entropy=7,
                                       levy_area_approximation="space-time")
    path = torchsde.sdeint(equation, y, times, bm=motion, method=method, dt=0.1)
    path[-1].sum().backward()
    result[f"{kind} {method} {noise}"] = [
        *path[-1].flatten().tolist(), *(p.grad.norm().item() for p in equation.parameters())]
for noise in ("diagonal", "general"):
    torch.manual_seed(2)
    equation = Equation(noise, "stratonovich")
    motion = torchsde.BrownianInterval(0.0, 1.0, (4, 3 if noise == "diagonal" else 2), entropy=7)
    path = torchsde.sdeint_adjoint(equation, y, times, bm=motion, dt=0.1)
    path.square().sum().backward()
    result[f"adjoint {noise}"] = [p.grad.norm().item() for p in equation.parameters()]
torch.manual_seed(3)
motion = torchsde.BrownianTree(0.0, torch.zeros(4, 4), entropy=5)
path, divergence = torchsde.sdeint(Equation("diagonal", "ito"), y, times, bm=motion, logqp=True,
                                   dt=0.1, method="euler")
result["divergence"] = divergence.sum().item()
print(json.dumps(result))
