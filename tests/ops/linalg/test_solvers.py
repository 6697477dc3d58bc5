"""Samples of the ops of `flambeau/ops/linalg/solvers.py`."""
import numpy as np
import pytest
from matrices import KINDS, matrix, square
from sample_tests import SampleTests
from samples import Samples, call

import flambeau as torch

family = Samples()


@family("linalg.solve")
def _(r):
    calls = [call(square(r, kind=k), matrix(r, 3, 2, kind=k)) for k in KINDS]
    return calls + [call(square(r, 2), matrix(r, 3)), call(square(r, 2), matrix(r, 2, 3)),
                    call(square(r), matrix(r, 2, 3, 2)),
                    call(square(r, kind="complex"), matrix(r, 2, 3, kind="complex"), left=False)]


@family("linalg.solve_ex")
def _(r):
    return [call(square(r, 2), matrix(r, 3, 2))]


@family("linalg.solve_triangular")
def _(r):
    return [call(square(r, kind=k), matrix(r, 3, 2, kind=k), upper=u) for k in KINDS
            for u in (True, False)] + [
        call(square(r), matrix(r, 2, 2, 3), upper=True, left=False),
        call(square(r, 2), matrix(r, 3, 2), upper=False, unitriangular=True)]


@family("triangular_solve")
def _(r):
    return [call(matrix(r, 3, 2), square(r)), call(matrix(r, 3, 2), square(r), False),
            call(matrix(r, 3, 2), square(r), transpose=True)]


@family("linalg.tensorsolve")
def _(r):
    return [call(matrix(r, 2, 3, 6), matrix(r, 2, 3)),
            call(matrix(r, 2, 6, 3), matrix(r, 2, 3), dims=(1,))]


class TestSamples(SampleTests):
    family = family


@pytest.mark.parametrize("upper", [False, True])
def test_the_triangle_of_a_factor_that_is_not_read_has_no_part_in_gradients(upper):
    r = np.random.default_rng(0)
    a = torch.tensor(r.normal(size=(3, 3)) + 3 * np.eye(3), requires_grad=True)
    b = torch.tensor(r.normal(size=(3, 2)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: torch.cholesky_inverse(a, upper=upper), (a,))
    assert torch.autograd.gradcheck(lambda b, a: torch.cholesky_solve(b, a, upper), (b, a))


def columns_of(shape):
    """The strides of matrices of that shape that lie column by column."""
    dense = [1]
    for size in reversed(shape[1:]):
        dense.insert(0, dense[0] * max(size, 1))
    return (*dense[:-2], 1, max(shape[-2], 1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
@pytest.mark.parametrize("lead", [(), (2,), (0,), (2, 1)])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_results_lie_by_columns(n, lead, dtype):
    """As LAPACK leaves them, down to the strides of empty matrices and of those of one row."""
    a = torch.eye(n, dtype=dtype).expand(*lead, n, n) * 2
    b = torch.ones(*lead, n, 2, dtype=dtype)
    L = torch.linalg
    for found in (L.solve(a, b), L.inv(a), L.cholesky(a), *L.qr(a), L.svd(a).U, L.lu_factor(a).LU,
                  L.lstsq(a, b).solution, L.eigh(a).eigenvectors, torch.geqrf(a).a):
        assert found.stride() == columns_of(found.shape)


def test_solutions_of_a_batch_of_vectors_lie_as_columns_would():
    a = torch.eye(3, dtype=torch.float64).expand(2, 3, 3) + torch.ones(3, 3, dtype=torch.float64)
    b = torch.tensor([[1.0, 2, 3], [4, 5, 6]], dtype=torch.float64)
    x = torch.linalg.solve(a, b)
    assert x.stride() == (1, 2)
    assert torch.allclose((a @ x[..., None])[..., 0], b)


def test_no_pivoting_of_nothing():
    P, L, U = torch.linalg.lu(torch.zeros(3, 0), pivot=False)
    assert (P.shape, L.shape, U.shape) == ((0,), (3, 0), (0, 0))
    with pytest.raises(RuntimeError, match="LU without pivoting is not implemented on the CPU"):
        torch.linalg.lu(torch.zeros(3, 1), pivot=False)


def test_low_powers_are_rows():
    a = torch.ones(2, 3, 3).mT
    assert torch.linalg.matrix_power(a, 0).stride() == (9, 3, 1)
    assert torch.linalg.matrix_power(a, 1).stride() == (9, 3, 1)
