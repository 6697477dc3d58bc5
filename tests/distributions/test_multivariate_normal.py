"""The multivariate normal distribution."""

import math

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import MultivariateNormal, kl_divergence

LOC = torch.tensor([0.5, -1.0], dtype=torch.float64)
COVARIANCE = torch.tensor([[2.0, 0.4], [0.4, 1.5]], dtype=torch.float64)


def test_recorded():
    check_recorded(torch, "MultivariateNormal", "MultivariateNormal precision")


def test_moments():
    check_moments(torch, MultivariateNormal(LOC, COVARIANCE))


@pytest.mark.parametrize("argument", [
    {"covariance_matrix": COVARIANCE}, {"precision_matrix": torch.linalg.inv(COVARIANCE)},
    {"scale_tril": torch.linalg.cholesky(COVARIANCE)}])
def test_three_ways_to_give_the_matrix(argument):
    d = MultivariateNormal(LOC, **argument)
    torch.testing.assert_close(d.covariance_matrix, COVARIANCE)
    torch.testing.assert_close(d.precision_matrix @ COVARIANCE, torch.eye(2).double())
    torch.testing.assert_close(d.scale_tril, torch.linalg.cholesky(COVARIANCE))
    x = torch.tensor([[0.1, 0.2], [3.0, -2.0]], dtype=torch.float64)
    off = x - LOC
    square = (off @ torch.linalg.inv(COVARIANCE) * off).sum(-1)
    expected = -0.5 * square - math.log(2 * math.pi) - 0.5 * torch.linalg.slogdet(COVARIANCE)[1]
    torch.testing.assert_close(d.log_prob(x), expected)
    torch.testing.assert_close(d.entropy(), 1 + math.log(2 * math.pi) +
                               0.5 * torch.linalg.slogdet(COVARIANCE)[1])


def test_batches_broadcast():
    matrices = torch.stack([COVARIANCE, 2 * COVARIANCE, 3 * COVARIANCE])
    d = MultivariateNormal(torch.zeros(4, 1, 2).double(), matrices)
    assert (d.batch_shape, d.event_shape) == ((4, 3), (2,))
    assert d.rsample((5,)).shape == (5, 4, 3, 2)
    assert d.expand((2, 4, 3)).covariance_matrix.shape == (2, 4, 3, 2, 2)
    x = torch.ones(2, dtype=torch.float64)
    single = MultivariateNormal(torch.zeros(2).double(), 3 * COVARIANCE).log_prob(x)
    torch.testing.assert_close(d.log_prob(x)[1, 2], single)


def test_rsample_gradients():
    loc = LOC.clone().requires_grad_()
    tril = torch.linalg.cholesky(COVARIANCE).requires_grad_()
    torch.manual_seed(0)
    x = MultivariateNormal(loc, scale_tril=tril).rsample()
    torch.manual_seed(0)
    noise = torch.randn(2, dtype=torch.float64)
    by_loc, by_tril = torch.autograd.grad(x.sum(), (loc, tril))
    assert by_loc.tolist() == [1.0, 1.0]
    torch.testing.assert_close(by_tril[1], noise)


def test_divergence():
    p, q = MultivariateNormal(LOC, COVARIANCE), MultivariateNormal(-LOC, 2 * COVARIANCE)
    inverse = torch.linalg.inv(2 * COVARIANCE)
    expected = 0.5 * (1.0 + (2 * LOC) @ inverse @ (2 * LOC) - 2 + 2 * math.log(2))
    torch.testing.assert_close(kl_divergence(p, q), expected)


@pytest.mark.parametrize("arguments, message", [
    ((torch.tensor(1.0), COVARIANCE), "loc must be at least one-dimensional."),
    ((LOC,), "Exactly one of covariance_matrix or precision_matrix or scale_tril may be"),
    ((LOC, COVARIANCE[0]), "covariance_matrix must be at least two-dimensional"),
    ((LOC, None, COVARIANCE[0]), "precision_matrix must be at least two-dimensional"),
    ((LOC, None, None, COVARIANCE[0]), "scale_tril matrix must be at least two-dimensional"),
    ((LOC, -COVARIANCE), r"satisfy the constraint PositiveDefinite\(\)"),
    ((LOC, None, None, COVARIANCE), r"satisfy the constraint LowerCholesky\(\)"),
])
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MultivariateNormal(*arguments)
