"""A kernel and its twin in NumPy, which is what `f.reference` gives."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from flambeau import kernels

pytestmark = pytest.mark.skipif(not kernels.native_available, reason="the twins are all there is")
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kernels.py"


@pytest.mark.skipif(not BENCHMARK.exists(), reason="the benchmarks are not beside the tests")
def test_twins_that_the_benchmark_compares_agree():
    names = set()
    for name, kernel, twin, arguments in runpy.run_path(str(BENCHMARK))["rows"](64):
        with np.errstate(all="ignore"):
            found, expected = kernel(*arguments), twin(*arguments)
        for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected)):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=name)
        names.add(name)
    assert {"exp", "add", "sum 0", "cumsum 1"} <= names


def test_a_twin_never_calls_compiled_code():
    x = np.linspace(-2, 2, 9, dtype="f4")
    assert kernels.exp.reference.__name__ == kernels.exp.__name__ == "exp"
    np.testing.assert_allclose(kernels.exp.reference(x), np.exp(x), rtol=1e-6)
