"""Neural ordinary differential equations: solvers, the adjoint method, events."""
# needs: torchdiffeq
import json

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start, times = torch.tensor([2.0, 0.0]), torch.linspace(0.0, 1.0, 9)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


class Fall(nn.Module):
    def forward(self, t, state):
        speed = state[1]
        return speed, -9.81 * torch.ones_like(speed)


result = {}
for method in ("dopri5", "dopri8", "bosh3", "adaptive_heun", "euler", "midpoint", "rk4",
               "explicit_adams", "implicit_adams", "fehlberg2"):
    options = {"step_size": 0.05} if method in {"euler", "midpoint", "rk4"} else None
    result[method] = odeint(lambda t, y: matrix @ y, start, times, method=method,
                            options=options)[-1].tolist()
truth = odeint(lambda t, y: matrix @ y, start, times)
for name, solve in (("direct", odeint), ("adjoint", odeint_adjoint)):
    torch.manual_seed(1)
    field = Field()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (solve(field, start, times) - truth).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    result[name] = losses
height = torch.tensor([10.0], requires_grad=True)
moment, state = odeint_event(Fall(), (height, torch.zeros(1)), torch.tensor(0.0),
                             event_fn=lambda t, s: s[0], odeint_interface=odeint_adjoint)
moment.backward()
result["event"] = [moment.item(), state[1][-1].item(), height.grad.item()]
print(json.dumps(result))
