"""LU factors, over any leading dimensions: A = P L U.

Walter and Lehmann, Algorithmic differentiation of linear algebra functions with application in
optimum experimental design, 2010.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.linalg import lapack
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.linalg.solvers import in_front, triangular
from flambeau.ops.linalg.support import (
    add_terms,
    adjoint,
    check_fit,
    check_floating,
    check_is_floating,
    check_matrix,
    check_same_type,
    check_square,
    constant,
    differentiating,
    matmul,
    raise_failure,
    refuse_elements,
    transpose,
    with_gradient_of_factor,
)
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.view.diagonal import tril, triu
from flambeau.ops.view.join import cat
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first, batch_leading
from flambeau.ops.view.splitting import narrow

# ---- factors ------------------------------------------------------------------------------------


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L and U out of one matrix."""
    m, n = LU._array.shape[-2:]
    k = min(m, n)
    L = tril(narrow(LU, -1, 0, k), -1) + constant(np.eye(m, k), LU)
    return L, triu(narrow(LU, -2, 0, k))


def _lu_to_matrix_grad(P: Tensor, LU: Tensor, g: Tensor) -> Tensor:
    """With gL and gU the parts of the gradient below and above the diagonal, of square A = P L U:
    P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ. Further columns of U are L⁻¹ Pᵀ of A's; further rows
    of L are A's U⁻¹."""
    m, n = LU._array.shape[-2:]
    k = min(m, n)
    square = narrow(narrow(LU, -1, 0, k), -2, 0, k)
    L, U = unpacked(square)
    g1 = narrow(narrow(g, -1, 0, k), -2, 0, k)
    low, high = matmul(adjoint(L), tril(g1, -1)), matmul(triu(g1), adjoint(U))
    LH = adjoint(L)

    def over_L(X: Tensor) -> Tensor:
        return triangular(LH, X, True, True)

    def over_U(X: Tensor) -> Tensor:
        return adjoint(triangular(U, adjoint(X), True))
    if n > k:
        gU2, U2 = narrow(g, -1, k, n - k), narrow(LU, -1, k, n - k)
        low = low - matmul(gU2, adjoint(U2))
    if m > k:
        gL2, L2 = narrow(g, -2, k, m - k), narrow(LU, -2, k, m - k)
        high = high - matmul(adjoint(L2), gL2)
    result = over_U(over_L(tril(low, -1) + triu(high)))
    if n > k:
        result = cat([result, over_L(gU2)], -1)
    if m > k:
        result = cat([result, over_U(gL2)], -2)
    return matmul(P, result)


def _lu_factor_vjp(grad: Any, LU: Tensor, pivots: Tensor) -> Any:
    if grad[0] is None:
        return [None]
    P = lu_unpack(LU, pivots, False)[0]
    return [_lu_to_matrix_grad(P, LU, grad[0])]


def _check_lu_factor(name: str) -> Any:
    def canonical(A: Tensor, pivot: bool, *rest: Any) -> Any:
        if A._array.ndim < 2:
            raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: "
                               f"{list(A._array.shape)} instead")
        refuse_elements(A, "bBilUeW8", "lu_cpu")
        if not pivot and A._array.size:
            raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the "
                               "CPU")
        return A, pivot, *rest
    return canonical


lu_factor_ex = op(
    "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
    "(Tensor LU, Tensor pivots, Tensor info)", kernel=lapack.lu_factor_ex, kernel_checks=True,
    canonical=_check_lu_factor("torch.lu_factor"), core="(m,n)->(m,n),(k),()", vjp=_lu_factor_vjp,
    out_type=OUT_TYPE,
    differentiable=(True, False, False),
    doc="`lu_factor` and, for each matrix, 0 or the number of the first zero on U's diagonal.")


@op("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    out_type=OUT_TYPE, out_reported_as="linalg_lu_factor_ex")
def lu_factor(A: Tensor, pivot: bool) -> Any:
    """L (below the diagonal) and U in one matrix, and the rows exchanged, counted from 1."""
    LU, pivots, info = lu_factor_ex(A, pivot=pivot)
    raise_failure(info, "torch.linalg.lu_factor", lapack.ZERO_PIVOT, RuntimeError)
    return LU, pivots


def _pad_with_zeros(X: Tensor, m: int, n: int) -> Tensor:
    """X with zeros below and to the right, (m, n)."""
    lead, (rows, columns) = X._array.shape[:-2], X._array.shape[-2:]
    if columns < n:
        X = cat([X, new_zeros(X, (*lead, rows, n - columns))], -1)
    return X if rows == m else cat([X, new_zeros(X, (*lead, m - rows, n))], -2)


def _combine_factors(L: Any, U: Any, m: int, n: int) -> Any:
    """What is kept of L and U, in one matrix."""
    return add_terms(None if L is None else _pad_with_zeros(tril(L, -1), m, n),
                     None if U is None else _pad_with_zeros(triu(U), m, n))


def _lu_vjp(grad: Any, P: Tensor, L: Tensor, U: Tensor) -> Any:
    if grad[1] is None and grad[2] is None:
        return [None]
    m, n = L._array.shape[-2], U._array.shape[-1]
    return [_lu_to_matrix_grad(P, _combine_factors(L, U, m, n),
                               _combine_factors(grad[1], grad[2], m, n))]


linalg_lu = op(
    "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)", kernel=lapack.lu,
    kernel_checks=True, canonical=_check_lu_factor("linalg.lu"),
    core="(m,n)->(m,m),(m,k),(k,n)", vjp=_lu_vjp,
    differentiable=(False, True, True), saved_as={"pivot": True}, out_type=OUT_TYPE,
    doc="""A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    >>> import flambeau
    >>> flambeau.linalg.lu(flambeau.tensor([[0.0, 1.0], [2.0, 3.0]])).U
    tensor([[2., 3.],
            [0., 1.]])
    """)


def _check_lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool
                     ) -> Any:
    if LU_data._array.ndim < 2:
        raise RuntimeError("torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(LU_data._array.shape)} instead")
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                           "torch.int32 dtype.\nNote: this function is intended to be used with "
                           "the output produced by torch.linalg.lu_factor")
    if unpack_pivots and (LU_pivots._array > LU_data._array.shape[-2]).any():
        raise RuntimeError("pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
                           "Did you properly pass the result of lu_factor?")
    return LU_data, LU_pivots, unpack_data, unpack_pivots


def _unpack_name(LU_data: np.ndarray, LU_pivots: np.ndarray, unpack_data: bool,
                 unpack_pivots: bool) -> str:
    """Who refuses types: what cuts out the triangles, or what writes the permutation."""
    if unpack_data and LU_data.dtype.kind != "W":
        return "triu" if LU_data.shape[-2] > LU_data.shape[-1] else "tril"
    return "scatter_gather_scalar_cpu" if unpack_pivots else ""


def _lu_unpack_vjp(grad: Any, LU_data_shape: Any) -> Any:
    return [_combine_factors(*grad[1:], *LU_data_shape[-2:]), None]


def _lu_unpack_batched(size: int, dims: Any, *canonical: Any) -> Any:
    found, _ = batch_leading(lambda: lu_unpack)(size, dims, *canonical)
    of_data, of_pivots = canonical[2:]
    return found, [0 if of_pivots else None, *[0 if of_data else None] * 2]


lu_unpack = op(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)"
    " -> (Tensor P, Tensor L, Tensor U)", kernel=lapack.lu_unpack, kernel_checks=True,
    canonical=_check_lu_unpack, vjp=_lu_unpack_vjp, nondiff="LU_pivots", batch=_lu_unpack_batched,
    jvp=lambda LU_data, LU_data_t, unpack_data: (None, *_factor_tangents(LU_data_t, unpack_data)),
    differentiable=(False, True, True), method=False, out_type=OUT_TYPE, out_reported_as=None,
    refuses=(_unpack_name, "UW8"), doc="P, L and U out of what `lu_factor` gives.")


def _factor_tangents(tangent: Tensor, unpack_data: bool) -> tuple[Any, Any]:
    if not unpack_data:
        return None, None
    k = min(tangent._array.shape[-2:])
    return tril(narrow(tangent, -1, 0, k), -1), triu(narrow(tangent, -2, 0, k))


# ---- equations ----------------------------------------------------------------------------------


def _check_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Any:
    name = "linalg.lu_solve"
    check_is_floating(LU, f"torch.{name}")
    check_same_type(LU, B, name, "LU", "B")
    if pivots._array.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, f"torch.{name}")
    check_matrix(B, name, "B")
    check_fit(LU, B, left, name)
    if LU.size(-1) != pivots.size(-1):
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of "
                           "the matrix")
    if pivots._array.shape != LU._array.shape[:-1]:
        raise RuntimeError(f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but "
                           f"got pivots with shape {list(pivots.shape)} instead")
    check_floating(LU if B._array.size else B, f"torch.{name}", "linalg.lu_solve_cpu")
    return LU, pivots, B, left, adjoint


def _lu_solve_vjp(grad: Tensor, needs: Any, LU: Tensor, pivots: Tensor, result: Tensor, left: bool,
                  adjoint: bool) -> Any:
    """That of A is -gB Xᴴ, with gB the solution for the adjoint and the gradient: of the equation
    X A = B it is -Xᴴ gB, of those with Aᴴ the adjoint of these."""
    if differentiating(grad):
        grad = with_gradient_of_factor(grad, left == adjoint)
    gB = linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    if not needs[0]:
        return [None, None, gB]
    X, g = (gB, result) if adjoint else (result, gB)
    gA = -matmul(g, _adjoint(X)) if left else -matmul(_adjoint(X), g)
    P, L, U = lu_unpack(LU, pivots)
    gA = matmul(transpose(P, -2, -1), gA)
    low, high = matmul(gA, _adjoint(U)), matmul(_adjoint(L), gA)
    return [tril(low, -1) + triu(high), None, gB]


_adjoint = adjoint


def by_factors(call: Any) -> Any:
    """The batching rule of solutions by factors with exchanges of rows: a right side may have
    other dimensions in front than those."""
    def rule(size: int, dims: Any, LU: Tensor, pivots: Tensor, B: Tensor, *rest: bool) -> Any:
        LU, pivots = (batch_first(t, d, size) for t, d in zip((LU, pivots), dims))
        LU, B = in_front(size, (0, dims[2]), (LU, B))
        pivots = reshape(pivots, LU._array.shape[:-1])
        return call()(LU, pivots, B, *rest), 0
    return rule


linalg_lu_solve = op(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> "
    "Tensor", kernel=lapack.lu_solve, kernel_checks=True, canonical=_check_lu_solve,
    core="(n,n),(n),(m,k)->(m,k)", batch=by_factors(lambda: linalg_lu_solve.op.call),
    vjp=_lu_solve_vjp, nondiff="pivots", out_type=OUT_TYPE,
    doc="X with A X = B (or X A = B, or with Aᴴ) from what `lu_factor` gave for A.")


@op("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor", out_type=OUT_TYPE,
    out_reported_as="linalg_lu_solve")
def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve`, by its older name."""
    warn_once("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed "
              "in a future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments "
              "reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
              "X = torch.linalg.lu_solve(LU, pivots, B)")
    return linalg_lu_solve(LU_data, LU_pivots, self)


# ---- the older function -------------------------------------------------------------------------


@op("_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> "
    "(Tensor LU, Tensor pivots, Tensor info)", method=False, out=False)
def _lu_with_info(self: Tensor, pivot: bool, check_errors: bool) -> Any:
    """`linalg.lu_factor_ex`, by its older name; errors are not looked for."""
    return lu_factor_ex(self, pivot=pivot)


@python_function(private="_lu_no_infos", switched=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor` as a tuple, with `info` if asked for."""
    warn_once("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg."
              "lu_factor_ex and will be removed in a future PyTorch release.\n"
              "LU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
              "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
              "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced "
              "with\nLU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)")
    found = _lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    if not get_infos:
        found = found[:2]
    if out is None:
        return found
    for to, value in zip(out, found):
        to.resize_as_(value).copy_(value)
    return out
