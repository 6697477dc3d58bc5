"""The distribution of the ratio of two variances (F)."""

import math

import pytest
from distribution_cases import check_recorded

import flambeau as torch
from flambeau.distributions import FisherSnedecor, StudentT


def test_recorded():
    check_recorded(torch, "FisherSnedecor")


def test_moments():
    d = FisherSnedecor(torch.tensor([3.0, 3.0, 3.0]), torch.tensor([10.0, 3.0, 2.0]))
    assert d.mean.tolist() == pytest.approx([10 / 8, 3.0, math.nan], nan_ok=True)
    variance = 2 * 100 * 11 / (3 * 64 * 6)
    assert d.variance.tolist() == pytest.approx([variance, math.nan, math.nan], nan_ok=True)
    torch.manual_seed(0)
    x = FisherSnedecor(torch.tensor(3.0), torch.tensor(20.0)).sample((20000,))
    assert x.mean().item() == pytest.approx(20 / 18, rel=0.03)


def test_square_of_a_student_variable():
    """Of one and n degrees: F(t^2) 2 t = 2 p(t)."""
    t = torch.tensor([0.3, 1.0, 4.0], dtype=torch.float64)
    n = torch.tensor(5.0, dtype=torch.float64)
    density = FisherSnedecor(torch.ones_like(n), n).log_prob(t**2).exp()
    torch.testing.assert_close(density * 2 * t, 2 * StudentT(n).log_prob(t).exp())


def test_mode():
    d = FisherSnedecor(torch.tensor([5.0, 1.0]), torch.tensor([7.0, 7.0]))
    assert d.mode.tolist() == pytest.approx([3 / 5 * 7 / 9, math.nan], nan_ok=True)


def test_shapes_and_bad_arguments():
    d = FisherSnedecor(torch.ones(2, 1), torch.ones(3))
    assert d.batch_shape == (2, 3) and d.rsample((4,)).shape == (4, 2, 3)
    wide = d.expand((5, 2, 3))
    assert wide.rsample().shape == (5, 2, 3) and wide.df1.shape == (5, 2, 3)
    with pytest.raises(ValueError, match=r"Expected parameter concentration .* of distribution Ga"):
        FisherSnedecor(1.0, 0.0)
