"""The normal distribution with a covariance of low rank and a diagonal."""

import pytest
from distribution_cases import check_moments, check_recorded

import flambeau as torch
from flambeau.distributions import LowRankMultivariateNormal, MultivariateNormal, kl_divergence

LOC = torch.tensor([0.5, -1.0, 0.25], dtype=torch.float64)
FACTOR = torch.tensor([[1.0, 0.2], [0.5, -0.3], [0.0, 0.8]], dtype=torch.float64)
DIAGONAL = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)


def pair():
    full = MultivariateNormal(LOC, FACTOR @ FACTOR.mT + torch.diag(DIAGONAL))
    return LowRankMultivariateNormal(LOC, FACTOR, DIAGONAL), full


def test_recorded():
    check_recorded(torch, "LowRankMultivariateNormal")


def test_moments():
    check_moments(torch, pair()[0])


@pytest.mark.parametrize("name", ["covariance_matrix", "precision_matrix", "scale_tril", "mean",
                                  "mode", "variance"])
def test_matrices_are_those_of_the_full_covariance(name):
    low, full = pair()
    torch.testing.assert_close(getattr(low, name), getattr(full, name))


def test_density_and_divergence_are_those_of_the_full_covariance():
    low, full = pair()
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    torch.testing.assert_close(low.log_prob(x), full.log_prob(x))
    torch.testing.assert_close(low.entropy(), full.entropy())
    other = MultivariateNormal(-LOC, torch.eye(3).double() * 2)
    ones = torch.ones(3, dtype=torch.float64)
    low_other = LowRankMultivariateNormal(-LOC, 0 * ones[:, None], 2 * ones)
    expected = kl_divergence(full, other)
    for p in (low, full):
        for q in (other, low_other):
            torch.testing.assert_close(kl_divergence(p, q), expected)


def test_gradients():
    x = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    inputs = [t.clone().requires_grad_() for t in (LOC, FACTOR, DIAGONAL)]
    assert torch.autograd.gradcheck(
        lambda *p: LowRankMultivariateNormal(*p).log_prob(x), inputs)


def test_shapes_and_bad_arguments():
    d = LowRankMultivariateNormal(torch.zeros(2, 3), torch.ones(3, 1), torch.ones(3))
    assert d.batch_shape == (2,) and d.cov_factor.shape == (2, 3, 1)
    assert d.expand((5, 2)).rsample((4,)).shape == (4, 5, 2, 3)
    for arguments, message in [
        ((torch.tensor(1.0), FACTOR, DIAGONAL), "loc must be at least one-dimensional"),
        ((LOC, FACTOR[0], DIAGONAL), "cov_factor must be at least two-dimensional"),
        ((LOC, FACTOR[:2], DIAGONAL), "cov_factor must be a batch of matrices with shape 3 x m"),
        ((LOC, FACTOR, DIAGONAL[:2]), "cov_diag must be a batch of vectors with shape"),
    ]:
        with pytest.raises(ValueError, match=message):
            LowRankMultivariateNormal(*arguments)
