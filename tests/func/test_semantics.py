"""What stops derivatives, what functions close over, what stays in a graph, what is refused."""
import pytest

import flambeau
from flambeau import func

X, V = flambeau.tensor([1.0, 2.0]), flambeau.ones(2)


def detached_in_place(x):
    return x.clone().detach_() * x


@pytest.mark.parametrize("function", [lambda x: x.detach() * x, lambda x: x.data * x,
                                      detached_in_place])
def test_forward_mode_stops_where_reverse_mode_does(function):
    assert func.jvp(function, (X,), (V,))[1].tolist() == [1, 2]
    assert func.jacfwd(function)(X).diagonal().tolist() == [1, 2]
    assert func.vmap(lambda x: func.jvp(function, (x,), (flambeau.ones(()),))[1])(X).tolist() \
        == [1, 2]
    assert func.jvp(lambda x: func.grad(lambda y: function(y).sum())(x), (X,), (V,))[1].tolist() \
        == [0, 0]


def test_integers_have_no_tangents():
    assert not func.jacfwd(lambda x: x.long())(X).any()


def test_derivatives_by_what_a_function_closes_over():
    w = flambeau.tensor([3.0, 4.0], requires_grad=True)
    calls = {
        "grad": lambda: func.grad(lambda x: (w * w * x).sum())(X),
        "vjp": lambda: func.vjp(lambda x: w * w * x, X)[1](V)[0],
        "jvp": lambda: func.jvp(lambda x: w * w * x, (X,), (V,))[1],
        "jacrev": lambda: func.jacrev(lambda x: w * w * x)(X),
        "jacfwd": lambda: func.jacfwd(lambda x: w * w * x)(X),
        "hessian": lambda: func.hessian(lambda x: (w * w * x * x).sum() / 2)(X)}
    for name, call in calls.items():
        found, = flambeau.autograd.grad(call().sum(), w)
        assert found.tolist() == [6, 8], name
        with flambeau.no_grad():
            assert not call().requires_grad, name


def test_results_are_outside_the_graph_if_nothing_needs_it():
    cube = lambda x: (x ** 3).sum()
    for result in (func.grad(cube)(X), func.jvp(func.grad(cube), (X,), (V,))[0],
                   func.hessian(cube)(X), func.vmap(func.grad(cube))(flambeau.ones(3, 2)),
                   func.vjp(cube, X)[0], func.vjp(cube, X)[1](flambeau.ones(()))[0]):
        assert not result.requires_grad


def test_reverse_over_forward_over_writes():
    def function(y):
        z = y * 1
        z.sin_()
        z.mul_(y).pow_(2)
        return z.sum()
    slope = lambda x: func.jvp(function, (x,), (V,))[1]
    found = func.grad(slope)(X)
    expected = func.grad(lambda x: func.grad(lambda y: ((y.sin() * y) ** 2).sum())(x).sum())(X)
    assert flambeau.allclose(found, expected)


REFUSED = [
    (lambda: func.jvp(lambda x: x, X, V), RuntimeError, "Expected primals to be a tuple"),
    (lambda: func.jvp(lambda x: x, (X,), (X, X)), RuntimeError, "the same python structure"),
    (lambda: func.jvp(lambda x: x, (X,), (flambeau.ones(3),)), RuntimeError, "different size"),
    (lambda: func.jvp(lambda x: x, (X.long(),), (X.long(),)), ValueError, "floating point or"),
    (lambda: func.jvp(lambda x: 3, (X,), (X,)), RuntimeError, "unsupported type <class 'int'>"),
    (lambda: func.jvp(lambda x: None, (X,), (X,)), RuntimeError, "non-empty output"),
    (lambda: func.jvp(lambda x: x, (X,), (X,), has_aux=True), RuntimeError, "if has_aux is True"),
    (lambda: func.jvp(lambda x: X, (X,), (V,), strict=True), RuntimeError, "independent of the"),
    (lambda: func.vjp(lambda x: x.long(), X), RuntimeError, "All outputs of f must be floating"),
    (lambda: func.vjp(lambda x: x, X)[1](flambeau.ones(3)), RuntimeError, "Mismatch in shape"),
    (lambda: func.grad(lambda x: x.sum())(3), ValueError, "Thing passed to transform API must be"),
    (lambda: func.grad(lambda x: x.sum())(X.long()), RuntimeError, "only Tensors of floating"),
    (lambda: func.grad(lambda x: (x * 1j).sum())(X), RuntimeError, "only for real scalar outputs"),
    (lambda: func.grad(lambda x: x.sum(), argnums="a")(X), RuntimeError, "argnums must be int or"),
    (lambda: func.jacrev(lambda x: x, argnums=3)(X), RuntimeError, "Got argnum=3, but only 1"),
    (lambda: func.linearize(flambeau.sin, X)[1](flambeau.ones(3)), RuntimeError, "tangent:0 with"),
    (lambda: func.grad(lambda x: x.sum(), argnums=())(X), RuntimeError, "must be non-empty"),
    (lambda: func.jacfwd(lambda x, y: x * y, argnums=(0, -2))(X, V), RuntimeError,
     r"must be unique, got \(0, 0\)"),
    (lambda: func.vjp(lambda x: (x,), X)[1]([V]), RuntimeError, "same as pytree structure of out"),
    (lambda: func.vmap(lambda x: x)(), ValueError, r"vmap\(<lambda>\)\(<inputs>\): got no inputs"),
    (lambda: func.vmap(lambda x: (x, None))(X), ValueError, "NoneType'>. Did you mean to set out_"),
    (lambda: func.vmap(lambda x: x.tolist())(X), RuntimeError, "Cannot access data pointer of"),
    (lambda: func.vmap(lambda x: x if x > 0 else -x)(X), RuntimeError, "please file an issue at"),
    (lambda: func.vmap(OldStyle.apply)(X), RuntimeError, "must override the setup_context static"),
]


class OldStyle(flambeau.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_results_that_are_no_tensors_are_the_same_for_all_slices():
    found, other = func.vmap(lambda x: (x * 2, "kept"), out_dims=(0, None))(X)
    assert found.tolist() == [2, 4] and other == "kept"


def test_without_grad_mode_nothing_outside_is_recorded():
    p, w = flambeau.ones(3, requires_grad=True), flambeau.ones(3, requires_grad=True)

    def function(p):
        return (p * w).sin()

    with flambeau.no_grad():
        _, pullback = func.vjp(function, p)
        for call in (lambda v: pullback(v)[0], lambda v: func.vjp(function, p)[1](v)[0],
                     func.grad(lambda p: (function(p) * w).sum()),
                     lambda v: func.jvp(function, (p,), (v,))[1],
                     lambda v: func.jvp(func.grad(lambda p: function(p).sum()), (p,), (v,))[1]):
            assert not call(flambeau.ones(3)).requires_grad
            rows = func.vmap(call)(flambeau.eye(3))
            assert not rows.requires_grad and rows.abs().sum() > 0
    assert pullback(flambeau.ones(3))[0].requires_grad


def test_what_a_function_hands_through_is_what_it_was_given():
    x = flambeau.ones(2)
    passed = lambda x: ((x * 2).sum(), x)
    assert func.grad(passed, has_aux=True)(x)[1] is x
    assert func.vjp(passed, x, has_aux=True)[2] is x
    assert func.jacrev(lambda x: (x * 2, (x, x + 1)), has_aux=True)(x)[1][0] is x


def test_cotangents_are_one_argument():
    x = flambeau.ones(2)
    pullback = func.vjp(lambda x: {"a": x, "b": x}, x)[1]
    with pytest.raises(RuntimeError, match=r"cotangents: \*, primal output: {'a': \*, 'b': \*}"):
        pullback(x)
    with pytest.raises(TypeError):
        pullback({"a": x, "b": x}, x)
