"""`vmap`: its arguments and what it refuses."""
import pytest

import flambeau as torch
from flambeau.func import vmap

X = torch.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("in_dims, out_dims, wanted", [
    (0, 0, X), (0, 1, X.t()), (1, 0, X.t()), (-1, -1, X), ((1,), 1, X)])
def test_where_slices_come_from_and_go(in_dims, out_dims, wanted):
    assert torch.equal(vmap(lambda row: row * 1, in_dims, out_dims)(X), wanted)


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks_change_nothing(chunk_size):
    found = vmap(lambda a, b: (a.sum() + b, {"c": a * b}), (0, None), chunk_size=chunk_size)(X, 2.0)
    assert torch.equal(found[0], X.sum(1) + 2) and torch.equal(found[1]["c"], 2 * X)


def test_structures_of_arguments_and_results():
    found = vmap(lambda pair, d: {"sum": pair[0] + d["x"], "same": pair[1] * 2},
                 in_dims=((0, None), {"x": 0}), out_dims=0)((X, torch.ones(2)), {"x": X})
    assert torch.equal(found["sum"], 2 * X)
    assert found["same"].shape == (3, 2)            # one for each slice


def test_results_that_are_the_same_for_all():
    double, kept = vmap(lambda row: (row * 2, torch.tensor(5.0)), out_dims=(0, None))(X)
    assert torch.equal(double, 2 * X) and kept.item() == 5


def add(a, b):
    return a + b


@pytest.mark.parametrize("call, message", [
    (lambda: vmap(add)(X, torch.ones(4)), "Expected all tensors to have the same size in"),
    (lambda: vmap(add, (0, 3))(X, X), "expected in_dim to satisfy -2 <= in_dim < 2"),
    (lambda: vmap(add, (None, None))(X, X), "vmap: Expected at least one Tensor to vmap over"),
    (lambda: vmap(add, [0, 0])(X, X), "expected `in_dims` to be int or a"),
    (lambda: vmap(add, (0,))(X, X), "in_dims is not compatible with the structure of `inputs`"),
    (lambda: vmap(add, (0, 0))(X, 2.0), "We cannot vmap over non-Tensor arguments"),
    (lambda: vmap(add, (0, "a"))(X, X), "in_dim must be either an integer dimension or None"),
    (lambda: vmap(add)(), "got no inputs"),
    (lambda: vmap(lambda x: 3.0)(X), "must only return Tensors, got type <class 'float'>"),
    (lambda: vmap(lambda x: x, out_dims=None)(X), "can not return a BatchedTensor when out_dim"),
    (lambda: vmap(lambda x: x, out_dims=(0, 0))(X), "out_dims is not compatible with the"),
    (lambda: vmap(add, chunk_size=0), "chunk_size should be None or greater than 0"),
])
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_kinds_of_randomness():
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error'"):
        vmap(add, randomness="x")
    with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
        vmap(torch.rand_like)(X)
    same = vmap(torch.rand_like, randomness="same")(X)
    assert torch.equal(same[0], same[2])
    different = vmap(torch.rand_like, randomness="different")(X)
    assert not torch.equal(different[0], different[2])


def test_the_function_keeps_its_name():
    assert vmap(add).__name__ == "add"


def test_chunks_draw_the_same_numbers_where_slices_do():
    def noise(x):
        return x * 0 + torch.rand(2)
    found = vmap(noise, randomness="same", chunk_size=2)(torch.ones(5, 2))
    assert torch.equal(found, found[:1].expand(5, 2))
