"""Constraints: which values they accept, event dimensions, reprs."""

import pytest

import flambeau as torch
from flambeau.distributions import Categorical, Normal, constraints


@pytest.mark.parametrize("constraint, good, bad", [
    (constraints.boolean, [0.0, 1.0], [2.0, -1.0]),
    (constraints.nonnegative_integer, [0.0, 3.0], [-1.0, 0.5]),
    (constraints.positive_integer, [1.0, 3.0], [0.0, 1.5]),
    (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 1.5]),
    (constraints.real, [0.0, float("inf")], [float("nan")]),
    (constraints.positive, [0.1, float("inf")], [0.0, float("nan")]),
    (constraints.nonnegative, [0.0, 2.0], [-0.1]),
    (constraints.less_than(1.0), [0.0, -3.0], [1.0]),
    (constraints.half_open_interval(0.0, 1.0), [0.0, 0.5], [1.0, -0.1]),
    (constraints.unit_interval, [0.0, 1.0], [1.1, -0.1]),
])
def test_checks(constraint, good, bad):
    assert constraint.check(torch.tensor(good)).all()
    assert not constraint.check(torch.tensor(bad)).any()


def test_checks_of_vectors():
    assert constraints.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [
        True, False]
    assert constraints.one_hot.check(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).tolist() == [
        True, False]
    assert constraints.multinomial(3).check(torch.tensor([[1.0, 2.0], [2.0, 2.0]])).tolist() == [
        True, False]
    vectors = torch.tensor([[0.0, 1.0], [float("nan"), 0.0]])
    assert constraints.real_vector.check(vectors).tolist() == [True, False]


SYMMETRIC = [[2.0, 1.0], [1.0, 2.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
LOWER = [[1.0, 0.0], [2.0, -1.0]]
SINGULAR = [[1.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("constraint, expected", [
    (constraints.square, [True, True, True, True]),
    (constraints.symmetric, [True, True, False, True]),
    (constraints.lower_triangular, [False, False, True, False]),
    (constraints.lower_cholesky, [False, False, False, False]),
])
def test_checks_of_matrices(constraint, expected):
    matrices = torch.tensor([SYMMETRIC, INDEFINITE, LOWER, SINGULAR])
    assert constraint.check(matrices).tolist() == expected
    assert constraint.event_dim == 2
    assert constraint.check(torch.eye(3).expand(2, 1, 3, 3)).tolist() == [[True], [True]]


@pytest.mark.parametrize("constraint, expected", [
    (constraints.positive_definite, [True, False, False]),
    (constraints.positive_semidefinite, [True, False, True]),
])
def test_definiteness(constraint, expected):
    assert constraint.check(torch.tensor([SYMMETRIC, INDEFINITE, SINGULAR])).tolist() == expected
    assert not constraint.check(torch.tensor(LOWER)).item()


def test_factors_of_correlations():
    good = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    assert constraints.corr_cholesky.check(torch.stack([good, 2 * good])).tolist() == [True, False]


def test_cat_and_stack():
    both = constraints.cat([constraints.positive, constraints.real], -1, [1, 2])
    assert both.check(torch.tensor([[-1.0, -1.0, 1.0]])).tolist() == [[False, True, True]]
    more = constraints.cat([constraints.positive])     # what lies beyond is not looked at
    assert more.check(torch.tensor([1.0, -1.0])).tolist() == [True]
    rows = constraints.stack([constraints.positive, constraints.real])
    assert rows.check(torch.tensor([[-1.0], [-1.0]])).tolist() == [[False], [True]]
    assert constraints.stack([constraints.boolean, constraints.real]).is_discrete
    with pytest.raises(AssertionError, match=r"lengths \(2\) must match cseq \(1\)"):
        constraints.cat([constraints.real], 0, [1, 2])
    with pytest.raises(AssertionError):
        constraints.stack([3])


def test_independent():
    constraint = constraints.independent(constraints.positive, 1)
    assert constraint.check(torch.tensor([[1.0, 2.0], [1.0, -1.0]])).tolist() == [True, False]
    assert constraint.event_dim == 1 and not constraint.is_discrete
    assert repr(constraint) == "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)"
    with pytest.raises(ValueError, match=r"Expected value.dim\(\) >= 1 but got 0"):
        constraint.check(torch.tensor(1.0))


def test_mixtures():
    constraint = constraints.MixtureSameFamilyConstraint(
        constraints.interval(torch.zeros(2), torch.tensor([1.0, 2.0])))
    assert constraint.check(torch.tensor([0.5, 1.5])).tolist() == [True, False]


def test_dependent():
    assert constraints.is_dependent(Categorical.support)
    assert not constraints.is_dependent(Normal.support)
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        constraints.dependent.check(torch.tensor(1.0))
    with pytest.raises(NotImplementedError, match=r".is_discrete cannot be determined statically"):
        constraints.dependent.is_discrete
    known = constraints.dependent(is_discrete=True, event_dim=2)
    assert known.is_discrete and known.event_dim == 2


def test_dependent_property():
    class Bounded:
        def __init__(self, high):
            self.high = high

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self):
            return constraints.interval(0, self.high)

    assert constraints.is_dependent(Bounded.support) and Bounded.support.event_dim == 0
    assert Bounded(3).support.upper_bound == 3


@pytest.mark.parametrize("constraint, shown", [
    (constraints.real, "Real()"), (constraints.greater_than(1), "GreaterThan(lower_bound=1)"),
    (constraints.half_open_interval(0, 2), "HalfOpenInterval(lower_bound=0, upper_bound=2)"),
    (constraints.multinomial(3), "Multinomial()"),
])
def test_repr(constraint, shown):
    assert repr(constraint) == shown
