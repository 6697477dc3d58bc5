"""Random programs of conjugate and negative views: transforms and modes change no value, and a view
means what its elements in memory of their own mean."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.func import grad, jvp, vjp, vmap
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.testing import assert_close
from flambeau.utils._python_dispatch import TorchDispatchMode

X = torch.tensor([[0.3 + 0.7j, -1.2 + 0.1j], [0.5 - 0.4j, 0.9 + 1.1j]], dtype=torch.complex128)
V = torch.tensor([[1 - 0.5j, 0.2 + 0.3j], [-0.7j, 0.4]], dtype=torch.complex128)


def written(change):
    def step(x):
        y = x.clone()
        change(y.conj())
        return y
    return step


STEPS = {
    "conj": lambda x: x.conj(),
    "negative": lambda x: torch._neg_view(x),
    "adjoint": lambda x: x.mH,
    "product": lambda x: x * x.conj(),
    "matrix product": lambda x: x @ x.conj(),
    "einsum": lambda x: torch.einsum("ij,jk->ik", x, x.mH),
    "parts": lambda x: torch.complex(x.conj().imag, x.real),
    "pairs": lambda x: torch.view_as_complex(torch.view_as_real(
        x.resolve_conj().resolve_neg().contiguous())),
    "exp": lambda x: (x.conj() * 0.1).exp(),
    "cat": lambda x: torch.cat([x[:1].conj(), x[1:]]),
    "index": lambda x: x.conj()[torch.tensor([1, 0])],
    "solve": lambda x: torch.linalg.solve(x + 5 * torch.eye(2, dtype=x.dtype), x.conj()),
    "multiplied": written(lambda y: y.mul_(2 - 1j)),
    "imaginary part written": written(lambda y: y.imag.mul_(3)),
    "element written": written(lambda y: y.__setitem__((0, 1), 2 + 1j)),
}
programs = st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=4)
examples = settings(max_examples=40, deadline=None)


def program(names):
    def run(x):
        for name in names:
            x = STEPS[name](x)
        return x
    return run


def resolved(x):
    return torch.from_numpy(x.resolve_conj().resolve_neg().detach().numpy().copy())


@examples
@given(programs)
def test_views_mean_their_elements(names):
    f = program(names)
    for turned in (X.conj(), torch._neg_view(X), torch._neg_view(X.conj())):
        assert_close(f(turned), f(resolved(turned)))


@examples
@given(programs)
def test_derivatives_by_views(names):
    f = program(names)
    for turn in (torch.conj, torch._neg_view):
        v = turn(V)
        assert_close(jvp(f, (X,), (v,)), jvp(f, (X,), (resolved(v),)))
        assert_close(jvp(f, (turn(X),), (v,)), jvp(f, (resolved(turn(X)),), (resolved(v),)))
        assert_close(vjp(f, X)[1](v), vjp(f, X)[1](resolved(v)))


@examples
@given(programs)
def test_forward_and_reverse_mode_are_adjoint(names):
    f = program(names)
    ahead, (back,) = jvp(f, (X,), (V,))[1], vjp(f, X)[1](X.conj())
    assert_close((X.conj().conj() * ahead).real.sum(), (back.conj() * V).real.sum())


@examples
@given(programs)
def test_slices(names):
    f = program(names)
    batch = torch.stack([X, V, X + V])
    assert_close(vmap(f)(batch.conj()), torch.stack([f(x.conj()) for x in batch]))

    def loss(x):
        return (f(x) * V).real.sum()
    assert_close(vmap(grad(loss))(batch), torch.stack([grad(loss)(x) for x in batch]))


@examples
@given(programs)
def test_graphs_and_modes(names):
    class Passing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))
    f = program(names)
    assert_close(make_fx(f)(X)(V), f(V))
    with Passing():
        found = f(X)
    assert_close(found, f(X))


@pytest.mark.parametrize("turn", [torch.conj, torch._neg_view])
def test_gradients_of_parts(turn):
    real, imag = X.real.clone().requires_grad_(), X.imag.clone().requires_grad_()
    found = torch.autograd.grad(torch.complex(real, imag), (real, imag), turn(V))
    wanted = turn(V).resolve_conj().resolve_neg().numpy()
    for part, values in zip(found, (wanted.real, wanted.imag)):
        assert np.array_equal(part.resolve_neg().numpy(), values)
