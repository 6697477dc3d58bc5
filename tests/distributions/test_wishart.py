"""The Wishart distribution."""

import warnings

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import Gamma, Wishart, kl_divergence

MATRIX = torch.tensor([[2.0, 0.4], [0.4, 1.5]], dtype=torch.float64)
DF = torch.tensor(4.5, dtype=torch.float64)


def test_recorded():
    check_recorded(torch, "Wishart")


def test_one_dimension_is_a_gamma_distribution():
    x = torch.tensor([0.5, 3.0], dtype=torch.float64)
    v = torch.tensor([[2.0]], dtype=torch.float64)
    d, other = Wishart(DF, v), Gamma(DF / 2, 0.25)
    torch.testing.assert_close(d.log_prob(x[:, None, None]), other.log_prob(x))
    torch.testing.assert_close(d.entropy(), other.entropy())
    torch.testing.assert_close(d.mean.squeeze(), other.mean)
    torch.testing.assert_close(d.variance.squeeze(), other.variance)


@pytest.mark.parametrize("argument", [
    {"covariance_matrix": MATRIX}, {"precision_matrix": torch.linalg.inv(MATRIX)},
    {"scale_tril": torch.linalg.cholesky(MATRIX)}])
def test_three_ways_to_give_the_matrix(argument):
    d = Wishart(DF, **argument)
    torch.testing.assert_close(d.mean, DF * MATRIX)
    torch.testing.assert_close(d.mode, (DF - 3) * MATRIX)
    torch.testing.assert_close(d.precision_matrix @ d.covariance_matrix, torch.eye(2).double())


@pytest.mark.filterwarnings("ignore:Singular sample")
def test_samples():
    torch.manual_seed(0)
    d = Wishart(DF, MATRIX)
    x = d.sample((20000,))
    torch.testing.assert_close(x.mean(0), d.mean, rtol=0.05, atol=0.05)
    torch.testing.assert_close(x.var(0), d.variance, rtol=0.1, atol=0.1)
    assert (torch.linalg.eigvalsh(x) > 0).all()
    wide = d.expand((3,))
    assert wide.sample((2,)).shape == (2, 3, 2, 2) and wide.df.shape == (3,)


def test_divergence():
    p, q = Wishart(DF, MATRIX), Wishart(DF + 1, 2 * MATRIX)
    assert kl_divergence(p, q).item() > 0
    torch.testing.assert_close(kl_divergence(p, p), torch.zeros((), dtype=torch.float64))


def test_gradient():
    df, matrix = DF.clone().requires_grad_(), MATRIX.clone().requires_grad_()
    x = torch.tensor([[1.0, 0.2], [0.2, 3.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda df, factor: Wishart(df, factor @ factor.mT).log_prob(x), (df, matrix))


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"Value of df=.* expected to be greater than ndim - 1"):
        Wishart(torch.tensor(1.0), MATRIX)
    with pytest.raises(ValueError, match="scale_tril must be at least two-dimensional"):
        Wishart(3.0, MATRIX[0])
    with pytest.raises(AssertionError):
        Wishart(3.0)
    with pytest.warns(UserWarning, match="Low df values detected"):
        Wishart(1.5, MATRIX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Wishart(2.5, MATRIX)
