"""Factors of symmetric and Hermitian matrices that need not be definite: A = P L D Lᵀ Pᵀ.

D has blocks of one or two rows; LAPACK keeps its lower part in the diagonal of the matrix `LD` and
below it, and the columns of L, with 1 on the diagonal, in what is left below, each in the order of
rows that it had when it was computed. For given rows the derivative follows from

    L⁻¹ dA L⁻ᵀ = X D + dD + D Xᵀ,  dL = L X,

in which X is zero in and above the blocks of D: dD is what the left side has in the blocks, and X D
what it has below them.
"""
from __future__ import annotations

from typing import Any

from flambeau import return_types
from flambeau.core.op import primitive
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels import lapack
from flambeau.ops.indexing.gather import gather
from flambeau.ops.linalg.solvers import solved, triangular
from flambeau.ops.linalg.support import (
    HIDDEN,
    adjoint,
    check_floating,
    check_solve,
    check_square,
    composed,
    differentiating,
    identity,
    matmul,
    raise_failure,
)
from flambeau.ops.refusals import refusing
from flambeau.ops.view.diagonal import tril
from flambeau.ops.view.shape import transpose


@primitive(lapack.ldl_layout, core="(n)->(n,n),(n,n),(n,n)", returns=tuple, **HIDDEN,
           name="ldl_layout")
def _layout(pivots: Tensor) -> Any:
    """Where LAPACK keeps what: P, rows of the elements of L, and which are D's below the diagonal.
    """
    return (pivots,)


def _turned(X: Tensor, hermitian: bool) -> Tensor:
    return adjoint(X) if hermitian else transpose(X, -2, -1)


def _unpacked(LD: Tensor, pivots: Tensor, hermitian: bool) -> tuple[Tensor, ...]:
    """P, L, D, the rows of L's elements, and which elements belong to L."""
    P, rows, pairs = _layout(pivots)
    one = identity(LD._array.shape[-1], LD)
    in_L = (tril(basis.ones_like(LD), -1) != 0) & ~pairs
    L = basis.where(in_L, gather(LD, LD._array.ndim - 2, rows), one)
    kept = LD * one
    if hermitian and LD.is_complex():
        kept = basis.cast(basis.real(kept), LD._array.dtype)
    below = basis.where(pairs, LD, 0)
    return basis.cast(P, LD._array.dtype), L, kept + below + _turned(below, hermitian), rows, in_L


def _factor_back(grad: Any, result0: Tensor, result1: Tensor, hermitian: bool) -> list[Any]:
    """The formula above, transposed; the matrix is read from its lower triangle."""
    P, L, D, rows, in_L = _unpacked(result0, result1, hermitian)
    g = grad[0]
    inverse = solved(D, identity(D._array.shape[-1], D))
    of_X = matmul(adjoint(L), basis.where(in_L, gather(g, g._array.ndim - 2, rows), 0))
    middle = basis.where(in_L, matmul(of_X, adjoint(inverse)), tril(g))
    left = triangular(adjoint(L), middle, True, True)
    right = left if hermitian else basis.conj(left)             # … L⁻¹, or its conjugate
    whole = adjoint(triangular(adjoint(L), adjoint(right), True, True))
    whole = matmul(adjoint(P), matmul(whole if hermitian else basis.conj(whole), P))
    below = tril(whole, -1) + tril(_turned(whole, hermitian), -1)
    kept = whole * identity(D._array.shape[-1], D)
    if hermitian and kept.is_complex():
        kept = basis.cast(basis.real(kept), kept._array.dtype)
    return [below + kept]


@primitive(lapack.ldl_factor, core="(n,n)->(n,n),(n),()", returns=tuple, vjp=_factor_back,
           differentiable=(True, False, False), node_name="LinalgLdlFactorExBackward0",
           name="linalg_ldl_factor_ex", **HIDDEN)
def _ldl_factor(input: Tensor, hermitian: bool) -> Any:
    return input, hermitian


@composed(namespace="linalg")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Bunch and Kaufman's A = P L D Lᵀ Pᵀ in LAPACK's compact form, and `info`."""
    check_square(A, "torch.linalg.ldl_factor_ex")
    check_floating(A, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    LD, pivots, info = _ldl_factor(A, hermitian)
    if check_errors:
        raise_failure(info, "torch.linalg.ldl_factor_ex", _SINGULAR_D)
    return return_types.linalg_ldl_factor_ex(LD, pivots, info)


_SINGULAR_D = ("The diagonal element {} is zero, and using it to solve a system would result in a "
               "division by zero.")


@composed(namespace="linalg")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """The factors of a symmetric (or Hermitian) matrix that need not be definite."""
    check_square(A, "torch.linalg.ldl_factor_ex")
    check_floating(A, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    LD, pivots, info = _ldl_factor(A, hermitian)
    raise_failure(info, "torch.linalg.ldl_factor", _SINGULAR_D)
    return return_types.linalg_ldl_factor(LD, pivots)


def _solve_back(grad: Tensor, LD: Tensor, pivots: Tensor, hermitian: bool) -> Tensor:
    if hermitian:
        return _ldl_solve(LD, pivots, grad, True)
    return basis.conj(_ldl_solve(LD, pivots, basis.conj(grad), False))


@primitive(lapack.ldl_solve, tensors=("LD", "pivots", "B"), core="(n,n),(n),(n,k)->(n,k)",
           d_B=_solve_back, name="linalg_ldl_solve", **HIDDEN)
def _ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Any:
    return LD, pivots, B, hermitian


def _solve_by_factors(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    """The same, where derivatives by the factors may be wanted."""
    P, L, D, _, _ = _unpacked(LD, pivots, hermitian)
    X = solved(D, triangular(L, matmul(P, B), False, True))
    return matmul(transpose(P, -2, -1), triangular(_turned(L, hermitian), X, True, True))


@composed(namespace="linalg")
@refusing("bBilUe", "torch.linalg.ldl_solve: Expected a floating point or complex tensor "
          "as input. Got {}")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution of A X = B from what `ldl_factor` gave for A."""
    check_square(LD, "torch.linalg.ldl_solve", "LD")
    if B._array.ndim < 2:
        raise RuntimeError("torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but "
                           f"it has {B._array.ndim} dimensions instead")
    if LD._array.shape[:-1] != pivots._array.shape:
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be "
                           "the same, but got pivots with shape "
                           f"{list(pivots._array.shape)} instead")
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError("torch.linalg.ldl_solve: Expected pivots to be integers. Got "
                           f"{type_name(pivots.dtype)}")
    check_solve(B, LD, "torch.linalg.ldl_solve")
    run = _solve_by_factors if differentiating(LD) else _ldl_solve
    return run(LD, pivots, B, hermitian)
