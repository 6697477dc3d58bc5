"""Convex problems as layers: solutions and their derivatives."""
# needs: cvxpylayers, cvxpy
# tolerance: 1e-3
import json

import cvxpy as cp
import torch
from cvxpylayers.torch import CvxpyLayer

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
n, m = 2, 3
x, a, b = cp.Variable(n), cp.Parameter((m, n)), cp.Parameter(m)
problem = cp.Problem(cp.Minimize(0.5 * cp.pnorm(a @ x - b, p=1)), [x >= 0])
layer = CvxpyLayer(problem, parameters=[a, b], variables=[x])
at, bt = torch.randn(m, n, requires_grad=True), torch.randn(m, requires_grad=True)
solution, = layer(at, bt)
solution.sum().backward()
q, z = cp.Parameter(2), cp.Variable(2)
simplex = CvxpyLayer(cp.Problem(cp.Minimize(cp.sum_squares(z - q)), [cp.sum(z) == 1, z >= 0]),
                     parameters=[q], variables=[z])
qt = torch.tensor([[0.9, 0.4], [0.2, -1.5]], requires_grad=True)
projected, = simplex(qt)
projected[:, 0].sum().backward()
print(json.dumps({"solution": solution.tolist(),
                  "gradient": [at.grad.norm().item(), bt.grad.norm().item()],
                  "projected": projected.flatten().tolist(),
                  "projection": qt.grad.flatten().tolist()}))
