"""Probabilistic programs: variational inference, Hamiltonian Monte Carlo, enumeration."""
# needs: pyro
import json
import warnings

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from pyro.nn import PyroModule, PyroSample
from pyro.poutine import block, condition, trace

warnings.simplefilter("ignore")
pyro.set_rng_seed(0)
x = torch.randn(30, 2)
y = x @ torch.tensor([1.0, -2.0]) + 0.5 + 0.1 * torch.randn(30)


class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](2, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(0.0, 1.0).expand([1]).to_event(1))

    def forward(self, x, y=None):
        scale = pyro.sample("scale", dist.HalfNormal(1.0))
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", len(x)):
            return pyro.sample("y", dist.Normal(mean, scale), obs=y)


result = {}
for kind in (AutoNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    model = Regression()
    guide = kind(model)
    inference = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO())
    result[kind.__name__] = [inference.step(x, y) for _ in range(30)][::6]
    draws = Predictive(model, guide=guide, num_samples=20)(x[:3])
    result[f"{kind.__name__} prediction"] = draws["y"].mean(0).tolist()


def mixture(data):
    weights = pyro.sample("weights", dist.Dirichlet(torch.ones(2)))
    with pyro.plate("components", 2):
        location = pyro.sample("location", dist.Normal(0.0, 5.0))
    with pyro.plate("data", len(data)):
        which = pyro.sample("which", dist.Categorical(weights))
        pyro.sample("obs", dist.Normal(location[which], 1.0), obs=data)


pyro.clear_param_store()
pyro.set_rng_seed(1)
data = torch.tensor([-3.0, -2.5, -3.5, 2.0, 3.0, 2.5, 4.0])
guide = AutoNormal(block(mixture, hide=["which"]))
inference = SVI(config_enumerate(mixture), guide, pyro.optim.Adam({"lr": 0.1}),
                TraceEnum_ELBO(max_plate_nesting=1))
result["mixture"] = [inference.step(data) for _ in range(20)][::5]
result["location"] = guide.median()["location"].tolist()


def eight(sigma):
    mu = pyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = pyro.sample("tau", dist.HalfCauchy(5.0))
    with pyro.plate("schools", len(sigma)):
        theta = pyro.sample("theta", dist.Normal(mu, tau))
        return pyro.sample("obs", dist.Normal(theta, sigma))


pyro.set_rng_seed(2)
observed = condition(eight, {"obs": torch.tensor([28.0, 8.0, -3.0, 7.0])})
result["density"] = trace(observed).get_trace(torch.tensor([15.0, 10.0, 16.0, 11.0])
                                              ).log_prob_sum().item()
sampler = MCMC(NUTS(observed, step_size=0.1, adapt_step_size=False, max_tree_depth=3),
               num_samples=5, warmup_steps=0, disable_progbar=True)
sampler.run(torch.tensor([15.0, 10.0, 16.0, 11.0]))
result["chain"] = {k: v[:3].flatten().tolist() for k, v in sampler.get_samples().items()}
print(json.dumps(result))
