"""Samples of the ops of `flambeau/ops/linalg/added_products.py`."""
import numpy as np
import pytest
from matrices import both, products
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()


@family("addmm")
def _(r):
    return both(r, (2, 2), (2, 3), (3, 2), draw="real") + both(
        r, (2,), (2, 3), (3, 2), draw="real", beta=0.5, alpha=2)


products(family, (2, 3), (2,), (3,), beta=2, alpha=3)("addr")
products(family, (2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("addbmm")
products(family, (5, 2, 4), (5, 2, 3), (5, 3, 4), beta=2, alpha=3)("baddbmm")


@family("addmv")
def _(r):
    return both(r, (2,), (2, 3), (3,), beta=0.5, alpha=2.0) + both(r, (), (2, 3), (3,)) + [
        call(np.array([np.nan, 1.0]), r.real(2, 3), r.real(3), beta=0).but(smooth=False)]


class TestSamples(SampleTests):
    family = family


@pytest.mark.parametrize("name, shapes", [
    ("addmm", [(2, 2)] * 3), ("addmv", [(2,), (2, 2), (2,)]),
    ("addbmm", [(2, 2), (1, 2, 2), (1, 2, 2)]), ("baddbmm", [(1, 2, 2)] * 3)])
@pytest.mark.parametrize("dtype, number, ctype", [
    ("int64", float("inf"), "int64_t"), ("int64", float("nan"), "int64_t"), ("int32", 2**40, "int"),
    ("float32", 1e300, "float"), ("float32", 1j, "float")])
def test_factors_are_numbers_that_an_element_holds(name, shapes, dtype, number, ctype):
    given = [flambeau.ones(shape, dtype=getattr(flambeau, dtype)) for shape in shapes]
    for factor in ("alpha", "beta"):
        with pytest.raises(RuntimeError, match=f"cannot be converted to type {ctype} without"):
            getattr(flambeau, name)(*given, **{factor: number})
