"""Samples of the ops of `flambeau/ops/linalg/inverses.py`."""
import numpy as np
from matrices import KINDS, definite, matrix, of_square
from sample_tests import SampleTests
from samples import Samples, call

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


class TestSamples(SampleTests):
    family = family
