"""Bayesian optimisation: fit a model, maximise acquisition functions, several objectives."""
# needs: botorch
import json
import warnings

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qLogExpectedImprovement,
)
from botorch.acquisition.multi_objective.logei import qLogExpectedHypervolumeImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Branin, BraninCurrin
from botorch.utils.multi_objective.box_decompositions.non_dominated import (
    FastNondominatedPartitioning,
)
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood, SumMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
problem = Branin(negate=True)
x = draw_sobol_samples(problem.bounds, n=8, q=1, seed=0).squeeze(1)
y = problem(x).unsqueeze(-1)
found = []
for _ in range(2):
    model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    point, value = optimize_acqf(LogExpectedImprovement(model, y.max()), problem.bounds, q=1,
                                 num_restarts=3, raw_samples=32, options={"seed": 1})
    x, y = torch.cat([x, point]), torch.cat([y, problem(point).unsqueeze(-1)])
    found.append([*point.flatten().tolist(), value.item()])
bound = UpperConfidenceBound(model, beta=2.0)(x[:3].unsqueeze(1))
sampler = SobolQMCNormalSampler(torch.Size([32]), seed=2)
many = qLogExpectedImprovement(model, y.max(), sampler=sampler)
pair = x[:2].clone().requires_grad_()
many(pair).backward()

double = BraninCurrin(negate=True)
x2 = draw_sobol_samples(double.bounds, n=10, q=1, seed=3).squeeze(1)
y2 = double(x2)
models = ModelListGP(*(SingleTaskGP(x2, y2[:, i:i + 1], outcome_transform=Standardize(1))
                       for i in range(2)))
fit_gpytorch_mll(SumMarginalLogLikelihood(models.likelihood, models))
reference = torch.tensor([-200.0, -12.0])
boxes = FastNondominatedPartitioning(reference, Y=y2)
hypervolume = qLogExpectedHypervolumeImprovement(
    models, reference, boxes, sampler=SobolQMCNormalSampler(torch.Size([16]), seed=4))
print(json.dumps({
    "found": found,
    "best": y.max().item(),
    "bound": bound.tolist(),
    "many": many(pair).item(),
    "gradient": pair.grad.flatten().tolist(),
    "posterior": models.posterior(x2[:3] * 0.9).mean.flatten().tolist(),
    "volume": boxes.compute_hypervolume().item(),
    "improvement": hypervolume(x2[:2].unsqueeze(0) * 0.5 + 0.25).item(),
}))
