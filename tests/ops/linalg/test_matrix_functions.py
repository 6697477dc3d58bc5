"""Samples of the ops of `flambeau/ops/linalg/matrix_functions.py`."""
import numpy as np
from matrices import KINDS, definite, matrix, of_square, square
from sample_tests import SampleTests
from samples import Samples, call

import flambeau

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
