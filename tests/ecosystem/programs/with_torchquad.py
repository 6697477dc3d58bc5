"""Numerical integration in many dimensions, and its derivatives."""
# needs: torchquad
import json
import logging

import torch
from torchquad import (
    VEGAS,
    Boole,
    GaussLegendre,
    MonteCarlo,
    Simpson,
    Trapezoid,
    enable_cuda,
    set_log_level,
    set_up_backend,
)

logging.disable(logging.WARNING)
set_log_level("ERROR")
set_up_backend("torch", data_type="float64", torch_enable_cuda=False)
domain = torch.tensor([[0.0, 1.0], [-1.0, 1.0]])
result = {"cuda": callable(enable_cuda)}


def function(x):
    return torch.sin(x[:, 0] * 2) + torch.exp(x[:, 1])


for kind in (Trapezoid, Simpson, Boole, GaussLegendre):
    result[kind.__name__] = kind().integrate(function, dim=2, N=625,
                                             integration_domain=domain).item()
result["MonteCarlo"] = MonteCarlo().integrate(function, dim=2, N=500, seed=3,
                                              integration_domain=domain).item()
result["VEGAS"] = VEGAS().integrate(function, dim=2, N=2000, seed=4,
                                    integration_domain=domain).item()
edge = domain.clone().requires_grad_()
integral = GaussLegendre().integrate(function, dim=2, N=100, integration_domain=edge)
integral.backward()
result["gradient"] = edge.grad.flatten().tolist()
rule = Simpson()
integrate = rule.get_jit_compiled_integrate(2, 121, integration_domain=domain)
result["compiled"] = integrate(function, domain).item()
print(json.dumps(result))
