"""Elements in other places, against NumPy."""
import numpy as np
import pytest

from flambeau.kernels.moving import rearranging as kernels

X = np.arange(24.0).reshape(2, 3, 4)


def test_turned():
    np.testing.assert_array_equal(kernels.flip(X, (0, 2)), np.flip(X, (0, 2)))
    np.testing.assert_array_equal(kernels.roll(X, (1, -2), (0, 2)), np.roll(X, (1, -2), (0, 2)))
    np.testing.assert_array_equal(kernels.roll(X, (5,), ()), np.roll(X, 5))
    for k in range(-2, 6):
        np.testing.assert_array_equal(kernels.rot90(X, k, (0, 1)), np.rot90(X, k, (0, 1)))


@pytest.mark.parametrize("diagonal", [-5, -1, 0, 2, 9])
def test_triangles(diagonal):
    np.testing.assert_array_equal(kernels.triu(X, diagonal), np.triu(X, diagonal))
    np.testing.assert_array_equal(kernels.tril(X, diagonal), np.tril(X, diagonal))


def test_repeated():
    np.testing.assert_array_equal(kernels.repeat(X, (5, 1, 2, 1)), np.tile(X, (5, 1, 2, 1)))
    assert kernels.repeat(X, (0, 1, 1)).shape == (0, 3, 4)


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonals(offset):
    row = np.arange(1.0, 4)
    np.testing.assert_array_equal(kernels.diagonal_embedding(row, offset, 0, 1),
                                  np.diag(row, offset))
    square = np.zeros((4, 4))
    size = 4 - abs(offset)
    found = kernels.diagonal_scatter(square, np.ones(size), offset, 0, 1)
    np.testing.assert_array_equal(found, np.diag(np.ones(size), offset))
    assert not square.any()
    np.testing.assert_array_equal(
        kernels.embedded_diagonal(np.ones(size), (4, 4), offset, 0, 1), found)


def test_slices():
    made = kernels.embedded_slices(np.ones((2, 2)), (2, 5), 1, 1, 2)
    assert made.tolist() == [[0, 1, 0, 1, 0]] * 2
    scattered = kernels.scattered_slices(np.zeros((2, 5)), np.ones((2, 2)), 1, 1, 2)
    np.testing.assert_array_equal(scattered, made)


def test_blocks():
    found = kernels.block_diag([np.ones((2, 2)), np.array([2.0, 3.0]), np.array(4.0)])
    assert found.tolist() == [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 2, 3, 0], [0, 0, 0, 0, 4]]


def test_windows_are_added_where_they_were_taken():
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(6), 3)[::2]
    found = kernels.summed_windows(np.ones(windows.shape), (6,), 0, 3, 2)
    assert found.tolist() == [1, 1, 2, 1, 1, 0]
