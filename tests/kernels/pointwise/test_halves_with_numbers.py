"""Arrays of halves and Python numbers: in float32, rounded once, as the twins have it."""
import ml_dtypes
import numpy as np
import pytest

from flambeau import kernels as k

bfloat16 = np.dtype(ml_dtypes.bfloat16)
RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), bfloat16], ids=["half", "brain"])
@pytest.mark.parametrize("size", [0, 1, 7, 513, 5000])
def test_numbers_stay_in_single_precision(dtype, size):
    x, y = (RANDOM.standard_normal(size).astype(dtype) for _ in range(2))
    wide, other = x.astype(np.float32), y.astype(np.float32)
    third = np.float32(0.1)
    assert np.array_equal(k.multiply(x, 0.1), (wide * third).astype(dtype))
    assert np.array_equal(k.add(0.1, x), (third + wide).astype(dtype))
    steep = np.where(wide > 0, wide, wide * third).astype(dtype)
    assert np.array_equal(k.leaky_relu(x, 0.1), steep)
    clipped = np.clip(wide, -third, np.float32(0.7)).astype(dtype)
    assert np.array_equal(k.hardtanh(x, -0.1, 0.7), clipped)
    expected = wide.astype(float) + float(third) * (other.astype(float) - wide)
    found = k.lerp(x, y, 0.1).astype(np.float32)
    assert np.allclose(found, expected, rtol=2 ** -7, atol=2 ** -9)
    out = x.copy()
    assert k.multiply(out, 0.1, out) is out and np.array_equal(out, (wide * third).astype(dtype))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), bfloat16], ids=["half", "brain"])
def test_remainders(dtype):
    x = (RANDOM.standard_normal(700) * 50).astype(dtype)
    y = (RANDOM.standard_normal(700) * 3 + 0.1).astype(dtype)
    expected = np.fmod(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
    assert np.array_equal(k.fmod(x, y), expected)


def test_remainders_of_doubles():
    x = RANDOM.standard_normal(3000) * 10.0 ** RANDOM.integers(-5, 8, 3000)
    y = RANDOM.standard_normal(3000)
    x[:6], y[:6] = [1e300, np.inf, 5, -5, 0.3, -7], [1e-5, 2, np.inf, -np.inf, 0.1, 7]
    with np.errstate(all="ignore"):
        for ours, numpys in ((k.fmod, np.fmod), (k.remainder, np.remainder)):
            assert np.array_equal(ours(x, y), numpys(x, y), equal_nan=True)
