"""Transforms: inverses, Jacobians, shapes, caches; and the registry of constraints."""

import pickle

import pytest

import flambeau as torch
from flambeau import distributions as d
from flambeau.distributions import constraints, transforms

X = torch.tensor([[0.3, 0.2, 0.7], [0.1, 0.5, 0.6]], dtype=torch.float64)

BIJECTIONS = [
    transforms.AffineTransform(1.0, -2.0),
    transforms.AffineTransform(torch.tensor([1.0, 2.0, 3.0]), 2.0, event_dim=1),
    transforms.CatTransform([transforms.ExpTransform(), transforms.TanhTransform()], -1, [1, 2]),
    transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(1.0, 2.0)]),
    transforms.CorrCholeskyTransform(),
    transforms.CumulativeDistributionTransform(d.Normal(0.0, 1.0)),
    transforms.ExpTransform(),
    transforms.IndependentTransform(transforms.ExpTransform(), 1),
    transforms.PowerTransform(torch.tensor(2.0, dtype=torch.float64)),
    transforms.ReshapeTransform((3,), (1, 3)),
    transforms.SigmoidTransform(),
    transforms.SoftplusTransform(),
    transforms.StackTransform([transforms.ExpTransform(), transforms.SigmoidTransform()], 0),
    transforms.StickBreakingTransform(),
    transforms.TanhTransform(),
]


@pytest.mark.parametrize("t", BIJECTIONS, ids=lambda t: type(t).__name__)
def test_inverse_and_shapes(t):
    y = t(X)
    assert torch.allclose(t.inv(y), X, atol=1e-9)
    assert tuple(t.forward_shape(X.shape)) == tuple(y.shape)
    assert tuple(t.inverse_shape(y.shape)) == tuple(X.shape)
    assert t.inv.inv is t
    jacobian = t.log_abs_det_jacobian(X, y)
    assert torch.allclose(t.inv.log_abs_det_jacobian(y, X), -jacobian)


def entries(t, y):
    """The coordinates of a value that are free."""
    if isinstance(t, transforms.CorrCholeskyTransform):
        return y[torch.ones(3, 3).tril(-1).bool()]
    if isinstance(t, transforms.StickBreakingTransform):
        return y[:-1]
    return y.reshape(-1)


@pytest.mark.parametrize("t", BIJECTIONS, ids=lambda t: type(t).__name__)
def test_determinant_of_the_jacobian(t):
    if isinstance(t, transforms.StackTransform):
        x = X
        rows = [torch.autograd.functional.jacobian(s, x[i]) for i, s in enumerate(t.transforms)]
        expected = sum(torch.linalg.slogdet(row).logabsdet for row in rows)
    else:
        x = X[0]
        matrix = torch.autograd.functional.jacobian(lambda x: entries(t, t(x)), x)
        expected = torch.linalg.slogdet(matrix).logabsdet
    assert torch.allclose(t.log_abs_det_jacobian(x, t(x)).sum(), expected)


def test_cache():
    t = transforms.TanhTransform().with_cache()
    x = torch.tensor(20.0)   # its tanh is 1 in single precision
    assert t.inv(t(x)) is x
    assert transforms.TanhTransform().inv(torch.tanh(x)).isinf()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


def test_equality_and_repr():
    assert transforms.AffineTransform(1, 2) == transforms.AffineTransform(1, 2)
    assert transforms.AffineTransform(1, 2) != transforms.AffineTransform(1, 3)
    assert repr(transforms.ComposeTransform([transforms.ExpTransform()])) == (
        "ComposeTransform(\n    ExpTransform()\n)")
    assert repr(transforms.ExpTransform().inv) == "_InverseTransform(ExpTransform())"
    assert transforms.identity_transform(X) is X


def test_pickling():
    t = transforms.ExpTransform()
    assert t.inv.inv is t
    assert pickle.loads(pickle.dumps(t)) == t


CONSTRAINTS = [
    constraints.real, constraints.positive, constraints.nonnegative, constraints.greater_than(2.0),
    constraints.less_than(-1.0), constraints.interval(-1.0, 3.0), constraints.unit_interval,
    constraints.half_open_interval(0.0, 2.0), constraints.simplex, constraints.corr_cholesky,
    constraints.independent(constraints.positive, 1),
    constraints.cat([constraints.positive, constraints.unit_interval], -1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real], 0),
]


@pytest.mark.parametrize("registry", [d.biject_to, d.transform_to])
@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
def test_registered_transforms_satisfy_their_constraint(registry, constraint):
    t = registry(constraint)
    x = X * 4 - 1
    assert constraint.check(t(x)).all()
    if t.bijective:
        assert torch.allclose(t.inv(t(x)), x, atol=1e-6)


@pytest.mark.parametrize("constraint", [
    constraints.lower_cholesky, constraints.positive_definite, constraints.positive_semidefinite])
def test_matrices(constraint):
    matrix = torch.tensor([[0.3, 0.2], [-0.4, 0.1]], dtype=torch.float64)
    assert constraint.check(d.transform_to(constraint)(matrix))


def test_unknown_constraints():
    with pytest.raises(NotImplementedError, match="Cannot transform _OneHot constraints"):
        d.biject_to(constraints.one_hot)
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        d.biject_to.register(3, abs)


@pytest.mark.parametrize("constraint, good, bad", [
    (constraints.boolean, [0.0, 1.0], [2.0, -1.0]),
    (constraints.nonnegative_integer, [0.0, 3.0], [-1.0, 0.5]),
    (constraints.integer_interval(1, 3), [1.0, 3.0], [0.0, 1.5]),
    (constraints.real, [0.0, float("inf")], [float("nan")]),
    (constraints.half_open_interval(0.0, 1.0), [0.0, 0.5], [1.0, -0.1]),
])
def test_checks(constraint, good, bad):
    assert constraint.check(torch.tensor(good)).all()
    assert not constraint.check(torch.tensor(bad)).any()


def test_checks_of_vectors_and_matrices():
    assert constraints.simplex.check(torch.tensor([[0.5, 0.5], [0.5, 0.6]])).tolist() == [
        True, False]
    assert constraints.one_hot.check(torch.tensor([[0.0, 1.0], [1.0, 1.0]])).tolist() == [
        True, False]
    assert constraints.multinomial(3).check(torch.tensor([[1.0, 2.0], [2.0, 2.0]])).tolist() == [
        True, False]
    matrices = torch.tensor([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]])
    assert constraints.positive_definite.check(matrices).tolist() == [True, False]
    assert constraints.lower_cholesky.check(torch.eye(2)).item()
    assert repr(constraints.independent(constraints.positive, 1)) == (
        "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)")
