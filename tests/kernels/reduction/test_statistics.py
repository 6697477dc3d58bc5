"""Variances and norms: the native kernels against those in NumPy."""
import numpy as np
import pytest

from flambeau import kernels
from flambeau.kernels.reduction import statistics

random = np.random.RandomState(0)
X = random.randn(4, 5, 6)
AXES = [None, 0, 2, (0, 2), (1, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variances(name, axis, dtype):
    x = X.astype(dtype)
    for correction, keepdims in [(None, False), (0, True), (True, False), (1.5, False)]:
        found = getattr(kernels, name)(x, axis, correction, keepdims)
        expected = getattr(statistics, name)(x, axis, correction, keepdims)
        pairs = zip(found, expected) if "mean" in name else [(found, expected)]
        for one, other in pairs:
            assert one.dtype == other.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=2e-6)


def test_too_few_elements_warn():
    with pytest.warns(UserWarning, match=r"var\(\): degrees of freedom is <= 0"):
        assert np.isnan(kernels.var(np.ones(1), None, None, False))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape, axis", [((0, 5), None), ((0, 5), 0), ((3, 0), 1), ((3, 1), 1),
                                         ((), None)])
def test_spreads_of_too_few_elements(shape, axis):
    x = np.ones(shape, np.float32)
    for name in ("var", "std", "var_mean", "std_mean"):
        found, expected = (np.asarray(getattr(k, name)(x, axis, 2.0, True))
                           for k in (kernels, statistics))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("order", [0, 1, 2, 3, -1.5, 0.5, np.inf, -np.inf])
@pytest.mark.parametrize("axis", AXES)
def test_norms(axis, order, dtype):
    x = X.astype(dtype)
    found = kernels.vector_norm(x, order, axis, False, None)
    expected = statistics.vector_norm(x, order, axis, False, None)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "float16" else 2e-6)


def test_norms_keep_nan_and_refuse_nothing_to_choose_from():
    assert np.isnan(kernels.vector_norm(np.array([1.0, np.nan]), np.inf, None, False, None))
    with pytest.raises(RuntimeError, match="does not have an identity"):
        kernels.vector_norm(np.zeros((0,)), np.inf, None, False, None)
