"""Types of elements: computing, casting, rounding once."""
import numpy as np
import pytest

from flambeau.kernels import dtypes


@pytest.mark.parametrize("dtype, kind", [
    (np.bool_, "b"), (np.uint8, "i"), (np.int64, "i"), (np.float16, "f"), (np.complex64, "c")])
def test_kinds(dtype, kind):
    assert dtypes.kind_of(np.dtype(dtype)) == kind


def test_halves_compute_in_single_precision():
    assert dtypes.compute_dtype(np.dtype(np.float16)) == np.float32
    assert dtypes.compute_dtype(np.dtype(np.float64)) == np.float64
    assert dtypes.is_reduced(np.dtype(np.float16)) and not dtypes.is_reduced(np.dtype(np.float32))
    assert dtypes.real_dtype(np.dtype(np.complex64)) == np.float32


def test_rounding_once():
    """Halves with single precision are computed in that, and rounded at the end."""
    kernel = dtypes.round_once(lambda x, y: x * y)
    x, y = np.array([0.1, 3.0], np.float16), np.array([1.0001, 2.0], np.float32)
    found = kernel(x, y)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, (x.astype(np.float32) * y).astype(np.float16))
    assert kernel(x, np.array(0.5, np.float32)).dtype == np.float16


@pytest.mark.parametrize("source, target, values, expected", [
    (np.float64, np.int32, [1.9, -1.9], [1, -1]), (np.float32, np.bool_, [0.0, 0.5], [False, True]),
    (np.int64, np.uint8, [256, -1], [0, 255]), (np.complex64, np.float32, [1 + 2j], [1.0]),
    (np.bool_, np.float16, [True, False], [1.0, 0.0])])
def test_casts(source, target, values, expected):
    found = dtypes.cast(np.array(values, source), np.dtype(target))
    assert found.dtype == target and found.tolist() == expected


def test_division_by_zero():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        dtypes.check_divisor(np.array([1, 0]))
    dtypes.check_divisor(np.array([1, 2]))


def test_names_of_types():
    assert dtypes.type_title(np.dtype(np.float32)) == "Float"
    assert dtypes.type_title(np.dtype(np.int64)) == "Long"
