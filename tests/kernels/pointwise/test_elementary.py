"""Elementary functions of elements: division, signs, bits, neighbours."""
import numpy as np
import pytest

from flambeau.kernels.pointwise import elementary as kernels

A, B = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_division(dtype):
    x, y = A.astype(dtype), B.astype(dtype)
    assert kernels.floor_divide(x, y).tolist() == [3, -4, -4, 3]
    assert kernels.remainder(x, y).tolist() == [1, 1, -1, -1]
    assert kernels.fmod(x, y).tolist() == [1, -1, 1, -1]
    assert kernels.divide(x.astype(float), y.astype(float)).tolist() == [3.5, -3.5, -3.5, 3.5]


def test_signs():
    assert kernels.sign(np.array([-2.0, 0.0, 3.0])).tolist() == [-1, 0, 1]
    np.testing.assert_allclose(kernels.sgn(np.array([3 + 4j, 0])), [0.6 + 0.8j, 0])
    np.testing.assert_allclose(kernels.angle(np.array([1j, -1.0])), [np.pi / 2, np.pi])
    assert kernels.heaviside(np.array([-1.0, 0, 1]), np.array(0.5)).tolist() == [0, 0.5, 1]


def test_combinations():
    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    assert kernels.axpy(x, y, 2.0).tolist() == [7, 12]
    assert kernels.addcmul(x, y, y, 0.5).tolist() == [5.5, 14.5]
    assert kernels.addcdiv(x, y, x, 2.0).tolist() == [7, 7]
    assert kernels.lerp(x, y, np.array(0.25)).tolist() == [1.5, 2.75]
    assert kernels.frac(np.array([1.25, -1.25])).tolist() == [0.25, -0.25]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_shifts_beyond_the_width(dtype):
    x = np.array([1, 1, 64], dtype)
    width = 8 * x.itemsize
    assert kernels.left_shift(x, np.array([1, width, width - 1], dtype)).tolist()[:2] == [2, 0]
    assert kernels.right_shift(x, np.array([0, width, 3], dtype)).tolist() == [1, 0, 8]


def test_neighbours_and_common_multiples():
    assert kernels.nextafter(np.zeros(1), np.ones(1))[0] == 5e-324
    assert kernels.lcm(np.array([4, 0, -6]), np.array([6, 5, 4])).tolist() == [12, 0, 12]


def test_logarithms_of_sums():
    x = np.array([1000.0, -np.inf, 0.0])
    np.testing.assert_allclose(kernels.logaddexp(x, x), [1000 + np.log(2), -np.inf, np.log(2)])


def test_where_and_clip():
    assert kernels.where(np.array([True, False]), np.ones(2), np.zeros(2)).tolist() == [1, 0]
    assert kernels.clip(np.array([-5.0, 0.5, 5.0]), -1.0, 1.0).tolist() == [-1, 0.5, 1]
