"""Samples of the ops of `flambeau/ops/linalg/reflections.py`."""
from matrices import KINDS, matrix
from sample_tests import SampleTests
from samples import Samples, call

family = Samples()


@family("geqrf")
def _(r):
    return [call(matrix(r, 2, 4, 3)), call(matrix(r, 3, 4))]


@family("linalg.householder_product")
def _(r):
    return [call(matrix(r, 4, 3, kind=k), matrix(r, 2, kind=k)) for k in KINDS] + [
        call(matrix(r, 2, 4, 3), matrix(r, 2, 3))]


@family("orgqr")
def _(r):
    return [call(matrix(r, 4, 3), matrix(r, 3))]


@family("ormqr")
def _(r):
    return [call(matrix(r, 4, 3, kind=k), matrix(r, 3, kind=k), matrix(r, 4, 2, kind=k))
            for k in KINDS] + [
        call(matrix(r, 4, 3), matrix(r, 3), matrix(r, 2, 4), left=False, transpose=True)]


class TestSamples(SampleTests):
    family = family
