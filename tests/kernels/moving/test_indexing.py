import numpy as np
import pytest

import flambeau as torch
from flambeau.kernels.moving import indexing as ix


def test_gather_and_its_transpose(normal):
    x = normal((4, 5, 3))
    where = np.random.default_rng(0).integers(0, 4, (2, 5, 2))
    found = ix.gather(x, 0, where)
    for i, j, k in np.ndindex(*where.shape):
        assert found[i, j, k] == x[where[i, j, k], j, k]
    g = normal(found.shape)
    back = ix.scatter_add(np.zeros_like(x), 0, where, g)
    np.testing.assert_allclose(np.sum(back * x), np.sum(g * found))


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_gather_of_whole_rows(normal, dtype):
    x = normal((7, 9, 40)).astype(dtype) if dtype != "c16" else normal((7, 9, 40)) + 1j
    for axis, index_shape, shape in [(0, (5, 1, 1), (5, 9, 40)), (1, (7, 4, 1), (7, 4, 40)),
                                     (0, (5, 1, 1), (5, 9, 30)), (1, (6, 4, 1), (6, 4, 33))]:
        where = np.random.default_rng(0).integers(0, x.shape[axis], index_shape)
        rows = np.broadcast_to(where, shape)
        found = ix.gather(x, axis, rows)
        np.testing.assert_array_equal(found, ix.gather.reference(x, axis, rows))
        np.testing.assert_array_equal(found, ix.gather(x, axis, rows.copy()))
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            ix.gather(x, axis, np.broadcast_to(where + 9, shape))


@pytest.mark.parametrize("version", [lambda f: f, lambda f: f.reference])
def test_results_are_in_rows_whatever_the_order_of_the_indices(version):
    x, where = np.arange(12.0).reshape(3, 4), np.array([[0, 1], [2, 0]]).T
    assert version(ix.gather)(x, 1, where).flags.c_contiguous
    assert ix.take(x, where).flags.c_contiguous


@pytest.mark.parametrize("version", [lambda f: f, lambda f: f.reference])
def test_scatter(version):
    x, where, src = np.zeros((2, 3)), np.array([[0, 2]]), np.array([[5.0, 7], [1, 1]])
    assert version(ix.scatter_)(x.copy(), 1, where, src).tolist() == [[5, 0, 7], [0, 0, 0]]
    assert version(ix.scatter_)(x.copy(), 1, where, 2.0).tolist() == [[2, 0, 2], [0, 0, 0]]
    ones = np.ones((2, 3))
    again = np.array([[1, 1]])
    found = version(ix.scatter_)(ones.copy(), 1, again, src, "multiply", True)
    assert found[0].tolist() == [1, 35, 1]
    found = version(ix.scatter_)(ones.copy(), 1, again, src, "mean", False)
    assert found[0].tolist() == [1, 6, 1]


def test_out_of_place_leaves_the_input_alone():
    x = np.zeros((3, 2), np.float32)
    where, src = np.array([[1, 1]]), np.ones((1, 2), np.float32)
    ix.scatter(x, 0, where, src)
    ix.scatter_add(x, 0, where, src)
    ix.index_add(x, 0, np.array([1]), src)
    ix.index_copy(x, 0, np.array([1]), src)
    ix.index_put(x, (np.array([1]),), src, True)
    assert not x.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.complex64])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows(dtype, axis):
    random = np.random.default_rng(0)
    x, rows = random.integers(-5, 5, (4, 5, 6)).astype(dtype), random.integers(0, 4, 7)
    shape = list(x.shape)
    shape[axis] = 7
    src = random.integers(-5, 5, shape).astype(dtype)
    np.testing.assert_array_equal(ix.index_select(x, axis, rows), np.take(x, rows, axis))
    expected = x.copy()
    np.add.at(np.moveaxis(expected, axis, 0), rows, 2 * np.moveaxis(src, axis, 0))
    np.testing.assert_array_equal(ix.index_add(x, axis, rows, src, 2), expected)


def test_embedding():
    weight, rows = np.arange(6.0).reshape(3, 2), np.array([[2, 0], [2, 1]])
    assert ix.embedding(weight, rows).tolist() == [[[4, 5], [0, 1]], [[4, 5], [2, 3]]]
    g = np.ones((2, 2, 2))
    assert ix.embedding_backward(g, rows, 3).tolist() == [[1, 1], [1, 1], [2, 2]]
    assert ix.embedding_backward(g, rows, 3, 2).tolist() == [[1, 1], [1, 1], [0, 0]]
    assert ix.embedding_backward(g, rows, 3, -1, True).tolist() == [[1, 1]] * 3


@pytest.mark.parametrize(
    "indices",
    [
        (np.array([0, -1, 0]),),
        (np.array([[0], [1]]), np.array([2, -1])),
        (slice(None), np.array([0, 0, 2])),
        (np.array([1, 0, 1]), slice(1, 3), np.array([0, 1, 0])),
        (np.array([True, False, True]),),
        (None, np.array([1, 1]), Ellipsis),
    ],
    ids=str,
)
def test_accumulate(indices, normal):
    x = normal((3, 4, 2))
    values = normal(x[indices].shape)
    expected = x.copy()
    np.add.at(expected, indices, values)
    np.testing.assert_allclose(ix.index_put(x, indices, values, True), expected)
    twisted = np.asfortranarray(x)
    assert ix.index_put_(twisted, indices, values, True) is twisted
    np.testing.assert_allclose(twisted, expected)


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 0, 3), (4, 3, 9)])
def test_nonzero(shape):
    x = np.random.default_rng(0).random(shape) > 0.6
    found = ix.nonzero(x)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.argwhere(x))
    assert ix.nonzero(np.asarray(True)).shape == (1, 0)


X, BAD, ONE = np.zeros((3, 2), np.float32), np.array([[3, 0]]), np.ones((1, 2), np.float32)
ERRORS = {
    "gather": (RuntimeError, "index 3 is out of bounds for dimension 0 with size 3",
               lambda: ix.gather(X, 0, BAD)),
    "scatter": (RuntimeError, "index 3 is out of bounds for dimension 0 with size 3",
                lambda: ix.scatter(X, 0, BAD, ONE)),
    "scatter value": (RuntimeError, "index 3 is out of bounds for dimension 0 with size 3",
                      lambda: ix.scatter(X, 0, BAD, 1.0)),
    "scatter_add": (RuntimeError, "index -4 is out of bounds for dimension 1 with size 2",
                    lambda: ix.scatter_add(X, 1, -BAD - 1, ONE)),
    "embedding": (IndexError, "index out of range in self", lambda: ix.embedding(X, BAD)),
    "index_select": (IndexError, "index out of range in self",
                     lambda: ix.index_select(X, 0, BAD[0])),
    "index_select 1": (RuntimeError, "INDICES element is out of DATA bounds, id=3 axis_dim=2",
                       lambda: ix.index_select(X, 1, BAD[0])),
    "index_copy": (IndexError,
                   "index_copy_.*: index 3 is out of bounds for dimension 0 with size 3",
                   lambda: ix.index_copy(X, 0, BAD[0][:1], ONE)),
    "index_put": (IndexError, "index 3 is out of bounds for dimension 0 with size 3",
                  lambda: ix.index_put(X, (BAD[0],), ONE, True)),
    "index_put last": (IndexError, "index 3 is out of bounds for dimension 1 with size 2",
                       lambda: ix.index_put(X, (slice(None), BAD[0]), 1.0, False)),
    "take": (IndexError, "out of range: tried to access index 6 on a tensor of 6 elements",
             lambda: ix.take(X, np.array([6]))),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_bounds(name):
    kind, text, call = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (130, 257), (200_000,)])
def test_masked(dtype, shape):
    random = np.random.default_rng(0)
    x = random.integers(-99, 99, shape).astype(dtype)
    for share in (0.0, 0.3, 1.0):
        mask = np.asarray(random.random(shape) < share)
        found = ix.masked(x, mask)
        assert found.dtype == dtype and found.ndim == 1
        np.testing.assert_array_equal(found, x[mask])
        np.testing.assert_array_equal(ix.masked(x.T, mask.T), x.T[mask.T])


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("included", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i2", "f2"])
def test_scatter_of_whole_slices(reduce, included, dtype):
    random = np.random.default_rng(0)
    x = random.integers(-9, 9, (3, 5, 4)).astype(dtype)
    for axis, n in ((0, 7), (1, 6), (2, 9)):
        src = random.integers(-3, 4, [n if a == axis else s for a, s in enumerate(x.shape)])
        src = src.astype(dtype)
        rows = random.integers(0, x.shape[axis] - 1, n)     # the last slice gets nothing
        column = rows.reshape([-1 if a == axis else 1 for a in range(3)])
        repeated = np.broadcast_to(column, src.shape)
        want = ix.scatter_.reference(x.copy(), axis, repeated, src, reduce, included)
        for index in (repeated, repeated.copy()):
            found = ix.scatter(x, axis, index, src, reduce, included)
            assert found.dtype == x.dtype
            np.testing.assert_allclose(found, want, rtol=1e-3 if dtype == "f2" else 1e-6)
        with pytest.raises(RuntimeError, match="out of bounds"):
            ix.scatter(x, axis, np.broadcast_to(column + 99, src.shape), src, reduce)


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(60, 50, 20), (3, 200, 70)])
def test_slices_of_large_arrays(shape, axis, dtype):
    x = torch.from_numpy(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    at = torch.randint(0, shape[axis], (77,))
    np.testing.assert_array_equal(x.index_select(axis, at).numpy(),
                                  np.take(x.numpy(), at.numpy(), axis))
    np.testing.assert_array_equal(x.flip(axis).numpy(), np.flip(x.numpy(), axis))
    np.testing.assert_array_equal(x.roll(3, axis).numpy(), np.roll(x.numpy(), 3, axis))
    with pytest.raises((IndexError, RuntimeError)):
        x.index_select(axis, at + shape[axis])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "f8", "c16"])
def test_elements_of_masks_of_every_density(share, dtype):
    random = np.random.RandomState(0)
    x = (random.rand(37, 1003) * 100).astype(dtype)
    mask = random.rand(37, 1003) < share
    tensor, chosen = torch.from_numpy(x), torch.from_numpy(mask)
    assert (tensor[chosen].numpy() == x[mask]).all()
    assert (tensor[:, 3:1000][chosen[:, 3:1000]].numpy() == x[:, 3:1000][mask[:, 3:1000]]).all()
    rows = mask.any(1)
    assert (tensor[torch.from_numpy(rows)].numpy() == x[rows]).all()
    assert (chosen.nonzero().numpy() == np.argwhere(mask)).all()
    assert (chosen[0].nonzero().numpy() == np.argwhere(mask[0])).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape, dim, alpha, stepwise", [
    ((5,), 0, 1, True), ((5, 3), 0, 1, False), ((5, 3), 0, 2, True), ((3, 5, 4), 1, 1, True),
    ((3, 4, 5), 2, 1, False)])
def test_half_sums_round_where_torch_rounds(shape, dim, alpha, stepwise, dtype):
    at, x = torch.randint(5, (60,)), torch.randn(shape).to(dtype)
    more = torch.randn(*shape[:dim], 60, *shape[dim + 1:]).to(dtype)
    wanted = x.clone().movedim(dim, 0) if stepwise else x.double().movedim(dim, 0)
    for i, part in zip(at.tolist(), more.to(wanted.dtype).movedim(dim, 0)):
        wanted[i] = wanted[i] + alpha * part
    assert x.index_add(dim, at, more, alpha=alpha).equal(wanted.to(dtype).movedim(0, dim))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_gradients_of_tables_are_the_same_dense_and_sparse(dtype):
    at, g = torch.randint(7, (200,)), torch.randn(200, 3).to(dtype)
    found = []
    for sparse in (False, True):
        table = torch.zeros(7, 3, dtype=dtype, requires_grad=True)
        torch.nn.functional.embedding(at, table, sparse=sparse).backward(g)
        found.append(table.grad.to_dense())
    wanted = torch.zeros(7, 3, dtype=dtype)
    for i, row in zip(at.tolist(), g):
        wanted[i] += row
    assert found[0].equal(wanted) and found[1].equal(wanted)
