"""Sparse operands that are broadcast, and writes that do not fit."""
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau

shapes = st.lists(st.integers(1, 3), min_size=1, max_size=3)


def sparse_of(shape, sparse_dim, seed):
    generator = np.random.default_rng(seed)
    array = generator.standard_normal(shape) * (generator.random(shape) < 0.6)
    return flambeau.tensor(array).to_sparse(sparse_dim)


@given(shapes, st.data())
@settings(max_examples=80, deadline=None)
def test_products_with_dense_tensors_broadcast(shape, data):
    sparse_dim = data.draw(st.integers(1, len(shape)))
    x = sparse_of(shape, sparse_dim, data.draw(st.integers(0, 99))).requires_grad_()
    other = [data.draw(st.sampled_from([1, n])) for n in shape]
    kept = data.draw(st.integers(0, len(shape)))
    other = [2] * data.draw(st.integers(0, 2)) * (kept == 0) + other[kept:]
    factor = flambeau.randn(other, dtype=flambeau.float64, requires_grad=True)
    product = x * factor
    expected = x.to_dense() * factor
    np.testing.assert_allclose(product.to_dense().detach(), expected.detach())
    got, = flambeau.autograd.grad(product.to_dense().sum(), factor)
    wanted, = flambeau.autograd.grad(expected.sum(), factor)
    np.testing.assert_allclose(got.to_dense(), wanted)


@pytest.mark.parametrize("size", [(2, 2, 3), (4, 2, 2, 3), (2, 1, 3)])
def test_broadcasting_repeats_entries(size):
    x = flambeau.tensor([[[1.0, 0, 2]], [[0, 3.0, 0]]]).to_sparse()
    wide = flambeau._sparse_broadcast_to(x, size)
    assert wide.is_coalesced() and wide.to_dense().equal(x.to_dense().expand(size))


UNARY = ["abs_", "asin_", "floor_", "log1p_", "relu_", "sin_", "sqrt_", "nan_to_num_"]


@pytest.mark.parametrize("name", UNARY)
def test_writes_of_functions_need_each_place_once(name):
    x = flambeau.sparse_coo_tensor([[0, 0]], [0.25, 0.5], (2,))
    with pytest.raises(RuntimeError, match=f"{name} requires coalesced input"):
        getattr(x, name)()
    whole = x.coalesce()
    getattr(whole, name)()
    assert whole.to_dense().equal(getattr(x.to_dense(), name)())


@pytest.mark.parametrize("name", ["asin_", "log1p_", "sin_"])
def test_writes_keep_the_type(name):
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output"):
        getattr(flambeau.tensor([0, 1]).to_sparse(), name)()


def test_what_is_made_in_place_of_a_sparse_tensor():
    for make in (flambeau.zeros, flambeau.empty):
        out = flambeau.eye(3).to_sparse()
        assert make(2, 3, out=out) is out
        assert out.shape == (2, 3) and out._nnz() == 0 and out.layout is flambeau.sparse_coo
    with pytest.raises(RuntimeError, match="layout Strided does not match layout of out parameter"):
        flambeau.empty(2, out=flambeau.eye(3).to_sparse(), layout=flambeau.strided)


def test_shapes_that_cannot_be_joined():
    parts = flambeau.eye(3).to_sparse(), flambeau.zeros(2, 2).to_sparse()
    for tensors, dim in itertools.product((parts, parts[::-1]), (0, 1)):
        with pytest.raises(RuntimeError, match="All tensors must have the same shape"):
            flambeau.cat(tensors, dim)


def test_no_diagonals_give_a_matrix_of_zeros():
    empty = flambeau.sparse.spdiags(flambeau.zeros(0, 3), flambeau.zeros(0, dtype=flambeau.int64),
                                    (3, 2))
    assert empty.shape == (3, 2) and empty._nnz() == 0


def test_new_tensors_have_the_layout():
    x = flambeau.eye(3, dtype=flambeau.float64).to_sparse()
    for made in (x.new(), x.new(2, 3), x.new_empty(2, 3), x.new_zeros((2, 3)),
                 x.new(flambeau.tensor([[0], [1]]), flambeau.tensor([2.0]), flambeau.Size((2, 3)))):
        assert made.layout is flambeau.sparse_coo and made.dtype is flambeau.float64
        assert made.shape in ((0,), (2, 3))
    assert x.new_empty(2, dtype=flambeau.int64).dtype is flambeau.int64


def test_diagonals_are_a_vector_or_a_matrix():
    with pytest.raises(RuntimeError, match="Diagonals must be vector or matrix"):
        flambeau.sparse.spdiags(flambeau.ones(1, 2, 3), flambeau.tensor([0]), (3, 3))


def test_a_dense_tensor_is_multiplied_in_place():
    dense, sparse = flambeau.arange(1., 5.).reshape(2, 2), flambeau.tensor([[0., 2.], [0., 0.]])
    dense.requires_grad_()
    product = dense.clone().mul_(sparse.to_sparse())
    assert flambeau.equal(product, dense * sparse)
    product.sum().backward()
    assert flambeau.equal(dense.grad.to_dense(), sparse)


def test_masks_let_gradients_of_their_places_through():
    places = flambeau.tensor([[0, 0, 1], [0, 1, 1]])
    s = flambeau.sparse_coo_tensor(places, flambeau.ones(3), (2, 2)).requires_grad_()
    mask = flambeau.sparse_coo_tensor(places[:, 1:], flambeau.ones(2), (2, 2))
    s.sparse_mask(mask).to_dense(masked_grad=False).backward(flambeau.ones(2, 2))
    assert s.grad.to_dense().tolist() == [[0., 1.], [0., 1.]]


@given(st.lists(st.integers(0, 5), max_size=5), st.lists(st.integers(0, 5), max_size=5))
def test_entries_merge_as_they_come(a, b):
    """Of the two next ones the first in order comes; two of one place come together."""
    x, y = (flambeau.sparse_coo_tensor([i], flambeau.ones(len(i)), (6,)) for i in (a, b))
    total, wanted, left, right = x + y, [], [*a], [*b]
    while left and right:
        p, q = left[0], right[0]
        wanted.append(min(p, q))
        left, right = left[p <= q:], right[q <= p:]
    assert total._indices().tolist() == [wanted + left + right]
    assert flambeau.equal(total.to_dense(), x.to_dense() + y.to_dense())
