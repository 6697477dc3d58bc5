"""Samples of the ops of `flambeau/ops/linalg/lu.py`."""
import numpy as np
import pytest
from matrices import KINDS, matrix, of_square, square
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

family = Samples()

of_square(family, "linalg.lu_factor_ex", "lu")


@family("linalg.lu_solve")
def _(r):
    p = np.array([2, 3, 3], np.int32)
    return [call(square(r), p, matrix(r, 3, 2)),
            call(square(r, 2, kind="complex"), np.stack([p, p]),
                 matrix(r, 2, 3, 2, kind="complex")),
            call(square(r, 2), np.stack([p, p]), matrix(r, 2, 3), left=False),
            call(square(r, kind="complex"), p, matrix(r, 3, 2, kind="complex"), adjoint=True)]


@family("lu_solve")
def _(r):
    return [call(matrix(r, 3, 2), square(r), np.array([2, 3, 3], np.int32))]


@family("lu_unpack")
def _(r):
    return [call(matrix(r, 3, 3), np.array([2, 3, 3], np.int32)),
            call(matrix(r, 2, 3, 4), np.array([[2, 3, 3], [1, 2, 3]], np.int32))]


@family("linalg.lu")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


@family("linalg.lu_factor")
def _(r):
    return [call(matrix(r, *s, kind=k)) for s in ((3, 3), (2, 4, 3), (3, 4)) for k in KINDS]


class TestSamples(SampleTests):
    family = family


def test_pivots_out_of_range():
    with pytest.raises(RuntimeError, match=r"must be between 1 and LU.size"):
        flambeau.lu_unpack(flambeau.eye(2), flambeau.tensor([2, 3], dtype=flambeau.int32))
