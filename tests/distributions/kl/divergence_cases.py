"""Recorded divergences, and divergences by numerical integration."""

import warnings

from distribution_cases import attempt, cases, close, recorded

import flambeau as torch
from flambeau.distributions import kl_divergence


def check_recorded_divergences(same):
    """Assert recorded values: of pairs of one family if `same`, else of the other pairs."""
    made = {name: make() for name, make in cases(torch).items()}
    wrong = {}
    for pair, value in recorded()["KL"].items():
        a, b = pair.split(" || ")
        # In the second of these PyTorch puts infinity into the wrong rows of a broadcast result.
        if (type(made[a]) is type(made[b])) is not same or pair == "Pareto || Normal":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = attempt(lambda a=a, b=b: kl_divergence(made[a], made[b]))
        if not close(mine, value, abs_=1e-5):
            wrong[pair] = mine, value
    assert not wrong


def by_integration(p, q, low, high, n=20001):
    """The integral of p log(p / q) between the bounds, by the midpoint rule."""
    step = (high - low) / n
    x = low + (torch.arange(n, dtype=torch.float64) + 0.5) * step
    log_p, log_q = p.log_prob(x), q.log_prob(x)
    return (log_p.exp() * (log_p - log_q)).sum() * step
