"""More than the gradient in one backward pass: of single samples, variances, curvature."""
# needs: backpack
import json

import torch
from backpack import backpack, extend
from backpack.extensions import (
    KFAC,
    KFLR,
    BatchGrad,
    BatchL2Grad,
    DiagGGNExact,
    DiagHessian,
    SqrtGGNExact,
    SumGradSquared,
    Variance,
)
from torch import nn

torch.manual_seed(0)
x, y = torch.rand(5, 1, 6, 6), torch.tensor([0, 1, 2, 0, 1])
model = extend(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Sigmoid(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(8, 3)))
loss_function = extend(nn.CrossEntropyLoss())
torch.manual_seed(1)
with backpack(BatchGrad(), BatchL2Grad(), SumGradSquared(), Variance(), DiagGGNExact(),
              SqrtGGNExact(), KFLR(), KFAC(mc_samples=2), DiagHessian()):
    loss_function(model(x), y).backward()
result = {}
for name, p in model.named_parameters():
    result[name] = {
        "grad": p.grad.norm().item(), "batch": p.grad_batch.flatten(1).norm(dim=1).tolist(),
        "l2": p.batch_l2.tolist(), "squared": p.sum_grad_squared.sum().item(),
        "variance": p.variance.sum().item(), "diagonal": p.diag_ggn_exact.sum().item(),
        "hessian": p.diag_h.sum().item(), "root": p.sqrt_ggn_exact.square().sum().item(),
        "factors": [f.norm().item() for f in p.kflr + p.kfac]}
print(json.dumps(result))
