"""The logistic normal distribution."""

from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import LogisticNormal, Normal


def test_recorded():
    check_recorded(torch, "LogisticNormal")


def test_two_probabilities_are_the_sigmoid_of_a_normal_variable():
    d = LogisticNormal(torch.tensor([0.3], dtype=torch.float64), torch.tensor([0.8]).double())
    p = torch.tensor([0.2, 0.6], dtype=torch.float64)
    x = torch.logit(p)
    expected = Normal(0.3, 0.8).log_prob(x) - (p * (1 - p)).log()
    torch.testing.assert_close(d.log_prob(torch.stack([p, 1 - p], -1)), expected)


def test_samples_lie_on_the_simplex():
    torch.manual_seed(0)
    x = LogisticNormal(torch.zeros(2, 3), torch.ones(2, 3)).rsample((50,))
    assert x.shape == (50, 2, 4) and (x > 0).all()
    torch.testing.assert_close(x.sum(-1), torch.ones(50, 2))


def test_shapes():
    d = LogisticNormal(torch.zeros(2, 3), torch.ones(2, 3))
    assert d.batch_shape == (2,) and d.event_shape == (4,)
    assert d.loc.shape == d.scale.shape == (2, 3)
    wide = d.expand((5, 2))
    assert wide.batch_shape == (5, 2) and wide.sample().shape == (5, 2, 4)
    assert repr(d.support) == "Simplex()"
