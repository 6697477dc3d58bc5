"""vmap: each slice as it would be alone; what is batched, where, and what is refused."""
import threading

import pytest

import flambeau as torch
from flambeau.func import grad, vmap
from flambeau.transforms.batching import BatchLevel
from flambeau.utils._pytree import tree_map_only


def test_slices_along_any_dimension():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for dim in (0, 1, 2, -1):
        wanted = torch.stack([s.cumsum(0) for s in x.unbind(dim)])
        assert torch.equal(vmap(lambda s: s.cumsum(0), in_dims=dim)(x), wanted)
        assert torch.equal(vmap(lambda s: s.cumsum(0), in_dims=dim, out_dims=-1)(x),
                           wanted.movedim(0, -1))


def test_unbatched_values_are_shared():
    x, w = torch.rand(5, 3), torch.rand(3, 2)
    assert torch.allclose(vmap(lambda s, m: s @ m, (0, None))(x, w), x @ w)
    assert torch.allclose(vmap(lambda s: s @ w)(x), x @ w)


def test_levels_nest():
    x, y = torch.rand(3), torch.rand(4)
    table = vmap(lambda a: vmap(lambda b: a * b)(y))(x)
    assert torch.allclose(table, torch.outer(x, y))
    turned = vmap(vmap(lambda a, b: a - b, (None, 0)), (0, None))(x, y)
    assert torch.allclose(turned, x[:, None] - y)


def test_gradients_of_slices_are_slices_of_gradients():
    x = torch.rand(4, 3, dtype=torch.float64)
    found = vmap(grad(lambda s: (s.softmax(0) * s).sum()))(x)
    wanted = torch.stack([grad(lambda s: (s.softmax(0) * s).sum())(row) for row in x])
    assert torch.allclose(found, wanted)


def test_pieces_are_the_whole():
    x = torch.rand(7, 3)
    assert torch.equal(vmap(torch.sin, chunk_size=2)(x), x.sin())


@pytest.mark.parametrize("call,error,said", [
    (lambda: vmap(torch.sum)(torch.tensor(1.0)), ValueError, "in_dim"),
    (lambda: vmap(torch.add)(torch.ones(2), torch.ones(3)), ValueError, "sizes"),
    (lambda: vmap(lambda x: x.item())(torch.ones(2)), RuntimeError, "item"),
    (lambda: vmap(lambda x: 1 if x else 2)(torch.ones(2)), RuntimeError, "control flow|item"),
    (lambda: vmap(lambda x: "a")(torch.ones(2)), ValueError, "must only return Tensors"),
    (lambda: vmap(torch.sin, in_dims=None)(torch.ones(2)), ValueError, "in_dims")])
def test_refusals(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_a_write_to_what_is_shared_is_refused():
    shared = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"vmap: add_\(self, \*extra_args\) is not possible"):
        vmap(lambda x: shared.add_(x))(torch.ones(2, 3))


def test_draws_are_the_same_or_different_as_asked():
    x = torch.zeros(4)
    same = vmap(lambda s: s + torch.rand(()), randomness="same")(x)
    different = vmap(lambda s: s + torch.rand(()), randomness="different")(x)
    assert (same == same[0]).all() and len(set(different.tolist())) == 4
    with pytest.raises(RuntimeError, match="random"):
        vmap(lambda s: s + torch.rand(()))(x)


# ---- the common case in C ------------------------------------------------------------------------

@pytest.fixture
def unasked(monkeypatch):
    """While it lasts, calls may not go through Python."""
    from flambeau._support.source_locations import native
    from flambeau.dispatch import function
    if native is None:
        pytest.skip("C is left out")

    def asked(op, args, kwargs=None):
        raise AssertionError(f"{op.name} went through Python")
    monkeypatch.setattr(function, "intercept", asked)


def test_calls_of_slices_do_not_go_through_python(unasked):
    x, w = torch.randn(3, 4), torch.randn(4, 4)

    def f(x):
        y = torch.tanh(x @ w) * 2 + x
        return torch.stack([y, y.softmax(0)]).view(2, 2, 2).transpose(0, 1).sum((0, 2))
    found = vmap(grad(lambda x: f(x).pow(2).sum()))(x)
    assert found.shape == x.shape
    assert vmap(vmap(lambda a, b: a - b, (None, 0)), (0, None))(x, x).shape == (
        3, 3, 4)


def test_a_level_costs_other_threads_nothing(unasked):
    entered, done = threading.Event(), threading.Event()

    def stay():
        with BatchLevel(3):
            entered.set()
            done.wait()
    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    try:
        x = torch.ones(3, requires_grad=True)
        (x.sin() * x + 1).sum().backward()
        assert x.grad.shape == (3,)
    finally:
        done.set()
        thread.join()


def test_a_weight_of_one_row_an_example():
    x, w = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3).flip(0)
    found = vmap(torch.nn.functional.linear)(x, w)
    assert found.equal((x * w).sum(1))
    deep = vmap(torch.nn.functional.linear)(x.expand(4, 2, 3), torch.ones(4, 3))
    assert deep.equal(x.sum(1).expand(4, 2))
    assert vmap(torch.nn.functional.linear, (None, 0))(x[0], w).equal((x[0] * w).sum(1))


class Wrapper(torch.Tensor):
    """A tensor without memory, whose ops run on the one that it holds."""

    @staticmethod
    def __new__(cls, elem):
        made = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype,
                                                   strides=elem.stride())
        made.elem = elem
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = tree_map_only(cls, lambda w: w.elem, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))


@pytest.mark.parametrize("function", [
    lambda s: s.sin() + s, lambda s: s.sum(), lambda s: s.view(3, 1), lambda s: s.expand(2, 3),
    lambda s: s.softmax(0), lambda s: s @ s, lambda s: s[1:].clone()])
def test_slices_of_wrappers_go_to_their_type(function):
    x = torch.rand(4, 3)
    found = vmap(function)(Wrapper(x))
    assert type(found) is Wrapper
    assert torch.allclose(found.elem, vmap(function)(x))


def test_wrappers_meet_slices_of_plain_tensors():
    x, y = torch.rand(3), torch.rand(4, 3)
    found = vmap(lambda s: (s * Wrapper(x)).exp().sum())(y)
    assert torch.allclose(found.elem, (y * x).exp().sum(1))
    held = Wrapper(x).requires_grad_()
    first, = torch.autograd.grad((held ** 3).sum(), held, create_graph=True)
    rows = vmap(lambda v: torch.autograd.grad(first, held, v, retain_graph=True)[0])(torch.eye(3))
    assert torch.allclose(rows.elem, torch.diag(6 * x))


def test_slices_of_sparse_tensors():
    dense = torch.tensor([[[1.0, 0, 2], [0, 3, 0]], [[0, 4, 0], [5, 0, 0]]])
    x = dense.to_sparse()
    for call in (lambda t: t.sum(), lambda t: t.sum(0), lambda t: t * 2, torch.sin,
                 lambda t: t.transpose(0, 1)):
        found = vmap(call)(x)
        assert found.is_sparse and torch.equal(found.to_dense(), vmap(call)(dense))
    with pytest.raises((NotImplementedError, RuntimeError)):
        vmap(lambda t: t.softmax(0))(x)                 # no kernel may look at what is not there


def test_windows_of_numbers_under_batched_gradients():
    x = torch.tensor(2.0, requires_grad=True)
    rows = torch.tensor([[1.0], [3.0]])
    found, = torch.autograd.grad(x.unfold(0, 1, 1), x, rows, is_grads_batched=True)
    assert found.tolist() == [1, 3]
