"""Tensors are compared with tolerances."""

import pytest

import flambeau
from flambeau.testing import assert_allclose, assert_close


@pytest.mark.parametrize("dtype, gap", [
    (flambeau.float16, 2e-3), (flambeau.bfloat16, 3e-2), (flambeau.float32, 3e-5),
    (flambeau.float64, 1e-6), (flambeau.complex64, 3e-5), (flambeau.int64, 1)])
def test_tolerances_go_with_the_type(dtype, gap):
    x = flambeau.ones(3, dtype=dtype)
    assert_close(x, x.clone())
    with pytest.raises(AssertionError, match="Tensor-likes are not"):
        assert_close(x, x + gap)
    assert_close(x, x + gap, rtol=0, atol=2 * gap)


def test_old_form_ignores_types():
    with pytest.warns(FutureWarning, match="deprecated"):
        assert_allclose(flambeau.ones(2), flambeau.ones(2, dtype=flambeau.float64))
