"""Laplace approximations: a network gets a posterior, marginal likelihood and predictions."""
# needs: laplace
import json
import logging
import warnings

import torch
from laplace import Laplace
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.manual_seed(0)
x = torch.randn(40, 3)
y = x[:, :1].sin() + 0.1 * torch.randn(40, 1)
loader = DataLoader(TensorDataset(x, y), 10)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
result = {}
for subset, structure in (("last_layer", "full"), ("all", "diag"), ("all", "kron"),
                          ("all", "full")):
    la = Laplace(model, "regression", subset_of_weights=subset, hessian_structure=structure)
    la.fit(loader)
    la.optimize_prior_precision(method="marglik", n_steps=5)
    mean, variance = la(x[:3])
    result[f"{subset} {structure}"] = [la.log_marginal_likelihood().item(),
                                       *mean.flatten().tolist(), *variance.flatten().tolist()]
print(json.dumps(result))
