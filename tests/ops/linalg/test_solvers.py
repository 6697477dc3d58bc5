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
