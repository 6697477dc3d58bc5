"""Samples with parameters: moments within what the number of draws allows, and refusals."""
import pytest

import flambeau as torch

N = 20_000


@pytest.mark.parametrize("draw,mean,variance", [
    (lambda: torch.bernoulli(torch.full((N,), 0.3)), 0.3, 0.21),
    (lambda: torch.poisson(torch.full((N,), 4.0)), 4, 4),
    (lambda: torch.binomial(torch.full((N,), 10.0), torch.full((N,), 0.2)), 2, 1.6),
    (lambda: torch.normal(torch.full((N,), 1.0), torch.full((N,), 2.0)), 1, 4),
    (lambda: torch._standard_gamma(torch.full((N,), 2.5)), 2.5, 2.5)])
def test_moments(draw, mean, variance):
    torch.manual_seed(0)
    x = draw()
    error = 5 * (variance / N) ** 0.5                       # five standard deviations
    assert abs(x.mean().item() - mean) < error
    assert abs(x.var().item() - variance) < 0.1 * variance


def test_multinomial_follows_its_weights():
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 0.0, 3.0])
    counts = torch.multinomial(weights, N, replacement=True).bincount(minlength=3)
    assert counts[1] == 0 and abs(counts[2] / N - 0.75) < 0.02
    assert sorted(torch.multinomial(torch.rand(2, 5), 5)[0].tolist()) == [0, 1, 2, 3, 4]


def test_samples_of_steps_have_zero_gradients():
    p = torch.full((3,), 0.5, requires_grad=True)
    torch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0.0] * 3


@pytest.mark.parametrize("call,said", [
    (lambda: torch.bernoulli(torch.tensor([1.5])), "p_in >= 0 && p_in <= 1|Expected p_in"),
    (lambda: torch.multinomial(torch.tensor([-1.0]), 1), "< 0|negative"),
    (lambda: torch.multinomial(torch.ones(2), 3), "cannot sample n_sample > prob_dist"),
    (lambda: torch.normal(0.0, -torch.ones(2)), "std >= 0")])
def test_parameters_that_no_distribution_has(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()
