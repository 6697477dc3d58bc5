"""Simulation-based inference: posterior, likelihood and ratio estimation of a Gaussian model."""
# needs: sbi
import json
import logging
import warnings

import torch
from sbi.inference import NLE, NPE, NRE
from sbi.utils import BoxUniform
from torch.distributions import MultivariateNormal

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
torch.manual_seed(0)
prior = BoxUniform(-2 * torch.ones(2), 2 * torch.ones(2))
theta = prior.sample((100,))
x = theta + 0.3 * torch.randn(100, 2)
observed = torch.tensor([0.5, -0.3])
result = {}
npe = NPE(prior, density_estimator="maf", show_progress_bars=False)
npe.append_simulations(theta, x).train(max_num_epochs=3, training_batch_size=25)
posterior = npe.build_posterior().set_default_x(observed)
draws = posterior.sample((20,), show_progress_bars=False)
result["posterior"] = draws.mean(0).tolist()
result["density"] = posterior.log_prob(torch.tensor([[0.5, -0.3], [1.0, 1.0]])).tolist()
nle = NLE(prior, density_estimator="nsf", show_progress_bars=False)
estimator = nle.append_simulations(theta, x).train(max_num_epochs=3, training_batch_size=25)
result["likelihood"] = estimator.log_prob(x[None, :3], theta[:3]).flatten().tolist()
nre = NRE(prior, classifier="linear", show_progress_bars=False)
ratio = nre.append_simulations(theta, x).train(max_num_epochs=3, training_batch_size=25)
score = ratio(theta[:3], x[:1].expand(3, 2)).flatten()
result["ratio"] = (score - score[0]).tolist()       # what depends on x alone isn't learnt
flow = NPE(MultivariateNormal(torch.zeros(2), torch.eye(2)), density_estimator="mdn",
           show_progress_bars=False)
flow.append_simulations(theta, x).train(max_num_epochs=3, training_batch_size=25)
result["mixture"] = flow.build_posterior().sample(
    (5,), x=observed, show_progress_bars=False).flatten().tolist()
print(json.dumps(result))
