"""Searching, distinct elements and histograms: the native kernels against those in NumPy."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.kernels.reduction import searching

random = np.random.RandomState(0)


def same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    sequence = np.sort(random.randint(0, 20, (3, 7)), 1).astype(dtype)
    values = random.randint(0, 22, (3, 4)).astype(dtype)
    for search in (searching.searchsorted, searching.searchsorted.reference):
        rows = search(sequence, values, None, False, right, None)
        for row, where, value in zip(sequence, rows, values):
            np.testing.assert_array_equal(
                where, np.searchsorted(row, value, "right" if right else "left"))
        assert search(sequence[0], values, None, True, right, None).dtype == np.int32


def test_searchsorted_with_nan_and_order():
    sequence, order = np.array([3.0, 1.0, 2.0]), np.array([1, 2, 0])
    for search in (searching.searchsorted, searching.searchsorted.reference):
        assert search(sequence, np.array([2.5]), order, False, False, None).tolist() == [2]
        assert search(sequence[order], np.array([np.nan]), None, False, False, None) == 3
        with pytest.raises(RuntimeError, match="side can only be 'left' or 'right'"):
            search(sequence, sequence, None, False, False, "middle")


@pytest.mark.parametrize("x", [random.randint(0, 5, (3, 4)), random.randint(0, 3, 20) / 2,
                               np.array([np.nan, 1, np.nan, 0]), np.zeros((0,)),
                               random.rand(6) > 0.5])
def test_distinct(x):
    for kernel in (searching.distinct, searching.distinct_runs):
        for asked in [(True, True), (False, True), (False, False)]:
            same(kernel(x, *asked), kernel.reference(x, *asked))


def test_nonzero_static_and_same():
    x = random.randint(0, 2, (3, 4)).astype(np.float32)
    for n in (0, 2, 30):
        same([searching.nonzero_static(x, n, -7)], [searching.nonzero_static.reference(x, n, -7)])
    assert searching.same(x, x.copy()) and not searching.same(x, x + 1)
    assert not searching.same(np.array([np.nan]), np.array([np.nan]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histograms(dtype):
    x = random.randn(40).astype(dtype)
    points = random.randn(30, 2).astype(dtype)
    for args in [(5, 0, 0), (4, -1, 1), (3, 2, 2)]:
        same([searching.count_in_bins(x, *args)], [searching.count_in_bins.reference(x, *args)])
    for limits in (None, (-1.0, 2.0)):
        edges = tuple([searching.bin_edges(points, i, 4, limits) for i in range(2)])
        for i, e in enumerate(edges):
            np.testing.assert_allclose(e, searching.bin_edges.reference(points, i, 4, limits),
                                       rtol=1e-6)
        weight = random.rand(30).astype(dtype)
        for each in (None, weight):
            same(searching.count_in_grid(points, each, edges),
                 searching.count_in_grid.reference(points, each, edges))
    with pytest.raises(RuntimeError, match="is not finite"):
        searching.bin_edges(points, 0, 4, (0.0, np.inf))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 1000])
def test_many_values_at_once_find_what_one_finds(n):
    random = np.random.RandomState(n)
    for dtype in ("f4", "f8", "i8", "u1"):
        sequence = np.sort((random.rand(n) * 50).astype(dtype))
        values = (random.rand(103) * 60).astype(dtype)
        for right in (False, True):
            found = torch.searchsorted(torch.from_numpy(sequence), torch.from_numpy(values),
                                          right=right)
            side = "right" if right else "left"
            assert (found.numpy() == np.searchsorted(sequence, values, side)).all()
