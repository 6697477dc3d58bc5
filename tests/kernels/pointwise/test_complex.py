"""Complex numbers of their parts."""
import numpy as np
import pytest

from flambeau.kernels.pointwise import complex as kernels


@pytest.mark.parametrize("part, whole", [(np.float32, np.complex64), (np.float64, np.complex128)])
def test_parts(part, whole):
    x, y = np.array([1, -2], part), np.array([3, 0.5], part)
    made = kernels.from_parts(x, y)
    assert made.dtype == whole and made.tolist() == [1 + 3j, -2 + 0.5j]
    np.testing.assert_allclose(kernels.polar(np.abs(made), np.angle(made)), made, rtol=1e-6)
    assert kernels.with_zeros(x, True).tolist() == [1j, -2j]
    assert kernels.with_zeros(x, False).tolist() == [1, -2]


def test_views_share_memory():
    x = np.array([[1 + 2j, 3 + 4j]])
    real = kernels.view_as_real(x)
    assert real.tolist() == [[[1, 2], [3, 4]]] and np.shares_memory(real, x)
    again = kernels.view_as_complex(real)
    assert again.tolist() == x.tolist() and np.shares_memory(again, x)
    turned = kernels.view_as_real(x.T)
    assert turned.shape == (2, 1, 2) and np.shares_memory(turned, x)


def test_numbers_read_as_others():
    x = np.array([1.0, 2.0], np.float32)
    assert kernels.reinterpreted(x, np.dtype(np.int32)).tolist() == [0x3F800000, 0x40000000]
