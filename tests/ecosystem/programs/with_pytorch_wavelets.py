"""Discrete and dual-tree complex wavelet transforms as layers."""
# needs: pytorch_wavelets
import json

import torch
from pytorch_wavelets import (
    DTCWTForward,
    DTCWTInverse,
    DWT1DForward,
    DWTForward,
    DWTInverse,
    ScatLayer,
)

torch.manual_seed(0)
x = torch.randn(1, 2, 32, 32, requires_grad=True)
result = {}
for wave, mode in (("haar", "zero"), ("db3", "symmetric"), ("bior2.4", "periodization")):
    low, high = DWTForward(J=2, wave=wave, mode=mode)(x)
    back = DWTInverse(wave=wave, mode=mode)((low, high))
    gradient, = torch.autograd.grad(low.square().sum() + high[0].abs().sum(), x)
    result[wave] = [low.sum().item(), high[0].abs().sum().item(), gradient.norm().item(),
                    (back[..., :32, :32] - x).abs().max().item() < 1e-4]
low, high = DTCWTForward(J=2)(x)
back = DTCWTInverse()((low, high))
gradient, = torch.autograd.grad(high[1].square().sum(), x)
result["dtcwt"] = [low.sum().item(), list(high[0].shape), gradient.norm().item(),
                   (back - x).abs().max().item() < 1e-4]
line = DWT1DForward(J=2, wave="db2")(x[0])
result["line"] = [line[0].sum().item(), line[1][1].abs().sum().item()]
result["scatter"] = ScatLayer()(x).sum().item()
print(json.dumps(result))
