"""Windows on the memory under an array."""
import numpy as np
import pytest

from flambeau.kernels.moving import strided

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("size, stride, offset", [
    ((3,), (4,), 1), ((2, 2), (4, 1), 5), ((4, 3), (1, 4), 0), ((5, 2), (0, 3), 2), ((), (), 7)])
def test_windows(size, stride, offset):
    found = strided.as_strided(X, size, stride, offset)
    expected = np.lib.stride_tricks.as_strided(
        X.reshape(-1)[offset:], size, [8 * s for s in stride])
    np.testing.assert_array_equal(found, expected)
    assert np.shares_memory(found, X)


def test_an_offset_is_of_the_memory():
    part = X[1:]
    assert strided.as_strided(part, (2,), (1,), 0).tolist() == [0, 1]
    assert strided.as_strided(part, (2,), (1,), None).tolist() == [4, 5]


def test_scatter_leaves_the_array_alone():
    found = strided.as_strided_scatter(X, np.full(3, -1.0), (3,), (4,), 1)
    assert found[:, 1].tolist() == [-1] * 3 and X[0, 1] == 1
    found[:, 1] = X[:, 1]
    np.testing.assert_array_equal(found, X)
