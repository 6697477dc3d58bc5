"""Curvature of a network as linear operators: Hessian, Gauss-Newton, Fisher, their spectra."""
# needs: curvlinops
import json

import numpy as np
import torch
from curvlinops import (
    EFLinearOperator,
    FisherMCLinearOperator,
    GGNLinearOperator,
    HessianLinearOperator,
    KFACLinearOperator,
    hutchinson_trace,
)
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
data = [(torch.randn(5, 4), torch.randn(5, 2)) for _ in range(2)]
params = list(model.parameters())
loss = nn.MSELoss()
vector = torch.ones(sum(p.numel() for p in params))
result = {}
for kind in (HessianLinearOperator, GGNLinearOperator, EFLinearOperator, FisherMCLinearOperator):
    operator = kind(model, loss, params, data)
    result[kind.__name__] = (operator @ vector).tolist()
kfac = KFACLinearOperator(model, loss, params, data, check_deterministic=False)
result["kfac"] = (kfac @ vector).tolist()
dense = HessianLinearOperator(model, loss, params, data) @ torch.eye(len(vector))
result["eigenvalues"] = np.linalg.eigvalsh(dense.numpy()).tolist()
torch.manual_seed(1)
result["trace"] = float(hutchinson_trace(GGNLinearOperator(model, loss, params, data), 5))
print(json.dumps(result))
