"""Transforms nested in each other, against closed forms."""
import pytest

import flambeau
from flambeau.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from flambeau.testing import assert_close

X = flambeau.linspace(0.2, 1.4, 4, dtype=flambeau.float64)


def f(x):
    """Its Jacobian is diag(cos x) + 1 x^T-like coupling, its second derivatives are known."""
    return x.sin() + (x * x).sum() / 2


def jacobian_of_f(x):
    return x.cos().diag() + x.expand(4, 4)


def test_jacobians():
    for transform in (jacrev, jacfwd):
        assert_close(transform(f)(X), jacobian_of_f(X))


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_jacobians_of_jacobians(outer, inner):
    found = outer(inner(f))(X)
    expected = flambeau.zeros(4, 4, 4, dtype=flambeau.float64)
    for i in range(4):
        expected[i] = flambeau.eye(4, dtype=flambeau.float64)
        expected[i, i, i] = expected[i, i, i] - X[i].sin()
    assert_close(found, expected)


def test_grad_of_vmap_of_grad():
    def loss(x):
        return vmap(grad(lambda v: (v ** 3).sum()))(x).sum()        # the sum of 3 x^2
    x = X.reshape(2, 2)
    assert_close(grad(loss)(x), 6 * x)


def test_vmap_of_vmap():
    a, b = flambeau.rand(3, 4), flambeau.rand(5, 4)
    found = vmap(lambda row: vmap(lambda other: row.dot(other))(b))(a)
    assert_close(found, a @ b.t())


def test_third_derivative():
    assert_close(vmap(grad(grad(grad(flambeau.sin))))(X), -X.cos())
    assert_close(vmap(lambda x: jvp(grad(flambeau.sin), (x,), (flambeau.ones_like(x),))[1])(X),
                 -X.sin())


def test_hessian():
    found = hessian(lambda x: (x ** 3).sum() + x.prod())(X)
    product = X.prod()
    expected = product / (X[:, None] * X[None, :])
    expected = expected - (product / X ** 2).diag() + (6 * X).diag()
    assert_close(found, expected)


def test_vjp_and_jvp_are_transposes():
    v, w = flambeau.rand(4, dtype=flambeau.float64), flambeau.rand(4, dtype=flambeau.float64)
    value, tangent = jvp(f, (X,), (v,))
    same, pullback = vjp(f, X)
    assert_close(value, same)
    assert_close((tangent * w).sum(), (pullback(w)[0] * v).sum())
    assert_close(linearize(f, X)[1](v), tangent)


def test_gradient_outside_of_a_transform():
    x = X.clone().requires_grad_()
    vmap(grad(flambeau.sin))(x).sum().backward()
    assert_close(x.grad, -X.sin())


def test_several_arguments_and_extras():
    def g(x, y):
        return (x * y).sum(), (x + y)
    (dx, dy), extra = grad(g, argnums=(0, 1), has_aux=True)(X, 2 * X)
    assert_close(dx, 2 * X)
    assert_close(dy, X)
    assert_close(extra, 3 * X)


def test_vmap_arguments():
    x = flambeau.rand(3, 2)
    assert_close(vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=1)(x, 2.0), x * 2)
    assert_close(vmap(lambda d: d["a"] + 1)({"a": x}), x + 1)
    assert_close(vmap(flambeau.sum, chunk_size=2)(x), x.sum(1))
    with pytest.raises(ValueError):
        vmap(lambda a, b: a + b)(x, flambeau.rand(4, 2))
    with pytest.raises(RuntimeError, match=r"\.item\(\)"):
        vmap(lambda a: a.sum().item())(x)


PAIRS = [((3,), (), (0, None)), ((3, 2), (), (0, None)), ((3,), (2,), (0, None)),
         ((3, 2), (3,), (0, 0)), ((3,), (3,), (0, 0)), ((), (3, 2), (None, 0))]


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("types", [
    ("float32", "float64"), ("int64", "float32"), ("float64", "int64"), ("uint8", "int16"),
    ("float32", "complex128"), ("bool", "int32"), ("bfloat16", "float32")], ids=str)
def test_slices_promote_as_they_would_alone(types, shapes):
    """A slice without dimensions ranks below one with, however the whole tensors rank."""
    *shapes, dims = shapes
    a, b = [flambeau.ones(s, dtype=getattr(flambeau, t)) for s, t in zip(shapes, types)]
    alone = [t if d is None else t[0] for t, d in zip((a, b), dims)]
    for f in (flambeau.add, flambeau.mul, flambeau.eq, flambeau.pow, flambeau.true_divide):
        assert vmap(f, dims)(a, b).dtype is f(*alone).dtype
        assert vmap(lambda x, y, f=f: f(y, x), dims)(a, b).dtype is f(*alone[::-1]).dtype


def test_writes_under_vmap():
    def g(row):
        out = flambeau.zeros_like(row)
        out[0] = row.sum()
        out.add_(row)
        return out
    x = flambeau.rand(3, 2)
    expected = x.clone()
    expected[:, 0] += x.sum(1)
    assert_close(vmap(g)(x), expected)


def test_passes_are_recorded_for_those_who_differentiate_them():
    w = flambeau.tensor([0.5, -1.0, 2.0], requires_grad=True)
    x, rows = flambeau.tensor([1.0, 2.0, 3.0]), flambeau.arange(6.0).view(2, 3)

    def f(x):
        return (x * x * w).sum()                # its gradient: 2 x w
    for found, expected in (
            (grad(f)(x), 2 * x), (vmap(grad(f))(rows), 2 * rows.sum(0)),
            (jvp(grad(f), (x,), (x,))[1], 2 * x), (jacrev(grad(f))(x), flambeau.full((3,), 2.0)),
            (vmap(lambda x: vjp(f, x)[1](flambeau.tensor(1.0))[0])(rows), 2 * rows.sum(0)),
            (vmap(hessian(f))(rows), flambeau.full((3,), 4.0))):
        by_w, = flambeau.autograd.grad(found.sum(), w)
        assert_close(by_w, expected)
    tangent = x.clone().requires_grad_()
    slope = jvp(grad(lambda x: x.pow(3).sum()), (x,), (tangent,))[1]
    assert_close(flambeau.autograd.grad(slope.sum(), tangent)[0], 6 * x)
    with flambeau.no_grad():
        assert not vmap(grad(f))(rows).requires_grad
    assert not vmap(grad(lambda x: x.pow(3).sum()))(rows).requires_grad


def test_functions_are_derived_in_inference_mode():
    """As in PyTorch, by tensors that were made there too."""
    with flambeau.inference_mode():
        x, w = flambeau.tensor([1.0, 2.0]), flambeau.tensor([3.0, 4.0])
        assert grad(lambda z: (z * w).sum())(x).equal(w)
        assert hessian(lambda z: (z ** 3).sum())(x).equal(flambeau.diag(6 * x))
        value, pullback = vjp(lambda z: z * z, x)
        assert not value.requires_grad and pullback(w)[0].equal(2 * x * w)
        value, slope = jvp(lambda z: z * z, (x,), (w,))
        assert slope.equal(2 * x * w) and not slope.is_inference()
        assert vmap(grad(lambda z: z ** 2))(x).equal(2 * x)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
        x * flambeau.ones(2, requires_grad=True)
