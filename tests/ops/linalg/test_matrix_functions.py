"""Samples of the ops of `flambeau/ops/linalg/matrix_functions.py`."""
import numpy as np
import pytest
from matrices import KINDS, definite, matrix, of_square, square
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau import linalg

family = Samples()

of_square(family, "linalg.matrix_exp", "matrix_exp")


@family("linalg.matrix_power")
def _(r):
    return [call(square(r, kind=k), n) for k in KINDS for n in (0, 1, 3, -2)]


@family("matrix_power")
def _(r):
    return [call(square(r, 2), 5)]


@family("linalg.matrix_norm")
def _(r):
    orders = ("fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf)
    return [call(matrix(r, 2, 3, 4), o) for o in orders] + [
        call(matrix(r, 2, 3, 4, kind="complex"), o, (0, 2), True) for o in orders]


@family("linalg.norm")
def _(r):
    return [call(matrix(r, 3, 4)), call(matrix(r, 2, 3, 4)), call(matrix(r, 3, 4), 2),
            call(matrix(r, 3, 4), "nuc"), call(matrix(r, 3), 3), call(matrix(r, 2, 3), 1, 1),
            call(matrix(r, 2, 3, 2), -1, (2, 0))]


@family("linalg.vander")
def _(r):
    return [call(matrix(r, 3)), call(matrix(r, 2, 3), N=4), call(r.integers(1, 4, 3))]


@family("vander")
def _(r):
    return [call(r.real(3)), call(r.real(3), 2), call(r.real(3), increasing=True),
            call(r.integers(1, 5, 3), 4)]


@family("linalg.cond")
def _(r):
    return [call(square(r, 2), p) for p in (None, 2, -2, 1, -1, np.inf, "fro", "nuc")] + [
        call(matrix(r, 2, 3, kind="complex"))]


@family("linalg.matrix_rank")
def _(r):
    low = matrix(r, 4, 2) @ matrix(r, 2, 3)
    return [call(low), call(matrix(r, 2, 3, 4)), call(definite(r), hermitian=True),
            call(low, tol=1e3), call(low, rtol=0.3)]


class TestSamples(SampleTests):
    family = family


def test_norms_of_matrices_without_elements_are_zero():
    for shape, orders in (((2, 0, 5), (2, "nuc", "fro", np.inf)), ((2, 5, 0), (2, 1, "nuc"))):
        for order in orders:
            norm = flambeau.linalg.matrix_norm(flambeau.ones(shape), order)
            assert norm.tolist() == [0, 0]


def test_condition_numbers_of_what_is_not_finite():
    for p in (1, "fro"):
        for bad in (float("nan"), float("inf")):
            assert flambeau.linalg.cond(flambeau.full((2, 2), bad), p) == float("inf")
    x = flambeau.eye(2, requires_grad=True)
    assert type(flambeau.linalg.cond(x).grad_fn).__name__ == "SqueezeBackward1"
    assert type(flambeau.linalg.cond(x, 1).grad_fn).__name__ == "NanToNumBackward0"


def test_the_first_power_is_a_copy():
    x = flambeau.eye(2)
    assert flambeau.linalg.matrix_power(x, 1).fill_(3).sum() == 12 and x.sum() == 2


def test_types_of_norms():
    """A norm is never of a narrower type, nor real of complex numbers or the other way round."""
    x = flambeau.ones(2, 2, dtype=flambeau.float64)
    for norm, name in ((linalg.vector_norm, "vector"), (linalg.matrix_norm, "matrix")):
        with pytest.raises(RuntimeError, match=rf"linalg\.{name}_norm: the dtype of the input "
                           r"\(Double\) should be convertible without narrowing .*\(Float\)"):
            norm(x, dtype=flambeau.float32)
        with pytest.raises(RuntimeError, match="should be real for real inputs"):
            norm(x, dtype=flambeau.complex128)
        with pytest.raises(RuntimeError, match="without narrowing"):
            norm(x.half(), dtype=flambeau.bfloat16)
        assert norm(x.half(), dtype=flambeau.float64).dtype == flambeau.float64


def test_refused_norms_and_tolerances():
    x, limit = flambeau.eye(2), flambeau.tensor(1j)
    for dim in ((), (0, 1, 1)):
        with pytest.raises(RuntimeError, match=r"linalg.norm: If dim is specified, it must be of "):
            linalg.norm(x, 2, dim)
    for order in ("fro", "nuc"):
        with pytest.raises(RuntimeError, match=r"dim must be a 2-tuple. Got 0"):
            linalg.norm(x, order, 0)
    with pytest.raises(RuntimeError, match="matrix_rank: rtol tensor of complex type is not"):
        linalg.matrix_rank(x, rtol=limit)
    with pytest.raises(RuntimeError, match="pinv: rcond tensor of complex type is not supported"):
        linalg.pinv(x, limit)
