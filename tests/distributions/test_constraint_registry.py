"""Which transform leads to which constraint."""

import pytest

import flambeau as torch
from flambeau import distributions as d
from flambeau.distributions import constraints, transforms

X = torch.tensor([[0.3, 0.2, 0.7], [0.1, 0.5, 0.6]], dtype=torch.float64)
CONSTRAINTS = [
    constraints.real, constraints.positive, constraints.nonnegative, constraints.greater_than(2.0),
    constraints.greater_than_eq(2.0), constraints.less_than(-1.0), constraints.interval(-1.0, 3.0),
    constraints.unit_interval, constraints.half_open_interval(0.0, 2.0), constraints.simplex,
    constraints.corr_cholesky, constraints.independent(constraints.positive, 1),
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
        torch.testing.assert_close(t.inv(t(x)), x, atol=1e-6, rtol=0)


@pytest.mark.parametrize("constraint", [
    constraints.lower_cholesky, constraints.positive_definite, constraints.positive_semidefinite])
def test_matrices(constraint):
    matrix = torch.tensor([[0.3, 0.2], [-0.4, 0.1]], dtype=torch.float64)
    assert constraint.check(d.transform_to(constraint)(matrix))


def test_the_simplex_has_two():
    assert isinstance(d.biject_to(constraints.simplex), transforms.StickBreakingTransform)
    assert isinstance(d.transform_to(constraints.simplex), transforms.SoftmaxTransform)


def test_unknown_constraints():
    with pytest.raises(NotImplementedError, match="Cannot transform _OneHot constraints"):
        d.biject_to(constraints.one_hot)
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        d.biject_to.register(3, abs)


def test_register():
    class Even(constraints.Constraint):
        pass

    registry = type(d.biject_to)()

    @registry.register(Even)
    def transform(constraint):
        return transforms.ExpTransform()

    assert isinstance(registry(Even()), transforms.ExpTransform)
    registry.register(Even(), lambda constraint: transforms.TanhTransform())
    assert isinstance(registry(Even()), transforms.TanhTransform)


@pytest.mark.parametrize("constraint, parts", [
    (constraints.interval(-1.0, 3.0), [transforms.SigmoidTransform, transforms.AffineTransform]),
    (constraints.greater_than(2.0), [transforms.ExpTransform, transforms.AffineTransform]),
])
def test_bounds_become_an_affine_transform(constraint, parts):
    t = d.biject_to(constraint)
    assert [type(part) for part in t.parts] == parts
    assert isinstance(d.biject_to(constraints.unit_interval), transforms.SigmoidTransform)
