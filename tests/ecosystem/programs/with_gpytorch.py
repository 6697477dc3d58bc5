"""Gaussian processes: exact, multitask, sparse variational, with deep kernels."""
# needs: gpytorch
import json
import math
import warnings

import gpytorch
import torch

warnings.simplefilter("ignore")
torch.manual_seed(0)
x = torch.linspace(0, 1, 24)
y = torch.sin(x * 2 * math.pi) + torch.randn(24) * 0.2


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.RBFKernel() + gpytorch.kernels.MaternKernel(nu=1.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x),
                                                         self.covar_module(x))


class Multitask(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
        self.covar_module = gpytorch.kernels.MultitaskKernel(
            gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1)

    def forward(self, x):
        return gpytorch.distributions.MultitaskMultivariateNormal(
            self.mean_module(x), self.covar_module(x))


class Sparse(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        strategy = gpytorch.variational.VariationalStrategy(
            self, inducing, gpytorch.variational.CholeskyVariationalDistribution(len(inducing)))
        super().__init__(strategy)
        self.mean_module = gpytorch.means.LinearMean(1)
        self.covar_module = gpytorch.kernels.PeriodicKernel()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x),
                                                         self.covar_module(x))


def fit(model, likelihood, objective, x, y, steps=8):
    model.train(), likelihood.train()
    optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()]
                                 if not isinstance(model, gpytorch.models.ExactGP)
                                 else model.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval(), likelihood.eval()
    return losses


result = {}
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Exact(x, y, likelihood)
result["exact"] = fit(
    model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y)
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    test = torch.linspace(0, 1, 7)
    prediction = likelihood(model(test))
    result["mean"], result["variance"] = prediction.mean.tolist(), prediction.variance.tolist()
    result["sample"] = model(test).rsample(torch.Size([2])).sum(1).tolist()
likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
both = torch.stack([y, x.cos()], -1)
model = Multitask(x, both, likelihood)
result["multitask"] = fit(
    model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, both)
likelihood = gpytorch.likelihoods.BernoulliLikelihood()
x, test = x.double(), test.double()
model, likelihood = Sparse(x[::3, None].clone()).double(), likelihood.double()
result["sparse"] = fit(
    model, likelihood, gpytorch.mlls.VariationalELBO(likelihood, model, num_data=24),
    x[:, None], (y > 0).double())
result["probability"] = likelihood(model(test[:, None])).mean.tolist()
with gpytorch.settings.max_cholesky_size(0), gpytorch.settings.num_trace_samples(64):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x.float(), y, likelihood)
    torch.manual_seed(1)
    result["conjugate gradients"] = fit(
        model, likelihood, gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model), x, y, 3)
print(json.dumps(result))
