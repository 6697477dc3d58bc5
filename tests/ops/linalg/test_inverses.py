"""Samples of the ops of `flambeau/ops/linalg/inverses.py`."""
import re

import numpy as np
import pytest
from matrices import KINDS, definite, matrix, of_square
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()

of_square(family, "linalg.inv", "linalg.inv_ex", "inverse", "det", "linalg.slogdet",
          "slogdet", "pinverse")


@family("logdet")
def _(r):
    return [call(definite(r, 2)), call(definite(r, kind="complex"))]


@family("linalg.lstsq")
def _(r):
    return [call(matrix(r, 4, 2, kind=k), matrix(r, 4, 3, kind=k)) for k in KINDS] + [
        call(matrix(r, 2, 2, 4), matrix(r, 2, 2, 3)),
        call(matrix(r, 2, 4, 2), matrix(r, 2, 4, 1), driver="gelsd").but(smooth=False),
        call(matrix(r, 2, 4, 2), matrix(r, 2, 4), driver="gels"),
        call(matrix(r, 4, 2), matrix(r, 4)), call(matrix(r, 4, 2), matrix(r, 4, 1), driver="gels")]


@family("linalg.tensorinv")
def _(r):
    return [call(matrix(r, 2, 3, 6)), call(matrix(r, 6, 3, 2), ind=1)]


@family("linalg.pinv")
def _(r):
    low = matrix(r, 4, 2) @ matrix(r, 2, 3)
    return [call(matrix(r, *s, kind=k)) for s in ((4, 3), (2, 3, 4)) for k in KINDS] + [
        call(low).but(smooth=False), call(definite(r), hermitian=True).but(smooth=False),
        call(matrix(r, 3, 3), rtol=0.01)]


@family("linalg.det")
def _(r):
    low = matrix(r, 3, 2) @ matrix(r, 2, 3)
    return [call(matrix(r, *s, 3, 3, kind=k)) for s in ((), (2,)) for k in KINDS] + [
        call(matrix(r, 0, 0)), call(np.zeros((3, 3))).but(smooth=False),
        call(low).but(smooth=False)]


def test_residuals_of_vectors_keep_a_column():
    a, b = flambeau.randn(2, 4, 3), flambeau.randn(2, 4)
    solution, residuals, *_ = flambeau.linalg.lstsq(a, b, driver="gels")
    assert solution.shape == (2, 3) and residuals.shape == (2, 1)


def test_least_squares_of_batches_that_do_not_broadcast():
    for shape, text in (((3, 4, 1), "a (2) must match the size of tensor b (3)"),
                        ((4, 2), "a (2) must match the size of tensor b (4)")):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            flambeau.linalg.lstsq(flambeau.ones(2, 4, 3), flambeau.ones(shape))


class TestSamples(SampleTests):
    family = family
