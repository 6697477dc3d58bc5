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

from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels.linalg import lapack
from flambeau.ops.factory.create import ones_like
from flambeau.ops.indexing.gather import gather
from flambeau.ops.linalg.lu import by_factors
from flambeau.ops.linalg.solvers import solve_matrices, triangular
from flambeau.ops.linalg.support import (
    adjoint,
    check_floating,
    check_is_floating,
    check_solve,
    check_square,
    differentiating,
    identity,
    matmul,
    raise_failure,
    refuse_elements,
)
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.diagonal import tril
from flambeau.ops.view.shape import transpose

# Where LAPACK keeps what: P, rows of the elements of L, and which are D's below the diagonal.
_layout = op("_ldl_layout(Tensor pivots) -> (Tensor P, Tensor rows, Tensor pairs)",
             kernel=lapack.ldl_layout, core="(n)->(n,n),(n,n),(n,n)", returns=tuple,
             function=False, method=False, out=False)


def _transpose_factor(X: Tensor, hermitian: bool) -> Tensor:
    return adjoint(X) if hermitian else transpose(X, -2, -1)


def _unpack_factors(LD: Tensor, pivots: Tensor, hermitian: bool) -> tuple[Tensor, ...]:
    """P, L, D, the rows of L's elements, and which elements belong to L."""
    P, rows, pairs = _layout(pivots)
    one = identity(LD._array.shape[-1], LD)
    in_L = (tril(ones_like(LD), -1) != 0) & ~pairs
    L = where(in_L, gather(LD, LD._array.ndim - 2, rows), one)
    kept = LD * one
    if hermitian and LD.is_complex():
        kept = cast(real_part(kept), LD._array.dtype)
    below = where(pairs, LD, 0)
    return cast(P, LD._array.dtype), L, kept + below + _transpose_factor(below,
                                                                         hermitian), rows, in_L


def _ldl_factor_vjp(grad: Any, LD: Tensor, pivots: Tensor, hermitian: bool) -> list[Any]:
    """The formula above, transposed; the matrix is read from its lower triangle."""
    P, L, D, rows, in_L = _unpack_factors(LD, pivots, hermitian)
    g = grad[0]
    inverse = solve_matrices(D, identity(D._array.shape[-1], D))
    of_X = matmul(adjoint(L), where(in_L, gather(g, g._array.ndim - 2, rows), 0))
    middle = where(in_L, matmul(of_X, adjoint(inverse)), tril(g))
    left = triangular(adjoint(L), middle, True, True)
    right = left if hermitian else conjugated(left)             # … L⁻¹, or its conjugate
    whole = adjoint(triangular(adjoint(L), adjoint(right), True, True))
    whole = matmul(adjoint(P), matmul(whole if hermitian else conjugated(whole), P))
    below = tril(whole, -1) + tril(_transpose_factor(whole, hermitian), -1)
    kept = whole * identity(D._array.shape[-1], D)
    if hermitian and kept.is_complex():
        kept = cast(real_part(kept), kept._array.dtype)
    return [below + kept]


def _check_ldl_factor(self: Tensor, hermitian: bool, check_errors: bool) -> Any:
    check_square(self, "torch.linalg.ldl_factor_ex")
    refuse_elements(self, "8", "tril")
    check_floating(self, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")
    return self, hermitian, check_errors


ldl_factor_ex = op(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
    "(Tensor LD, Tensor pivots, Tensor info)", kernel=lapack.ldl_factor_ex, kernel_checks=True,
    canonical=_check_ldl_factor, core="(n,n)->(n,n),(n),()", vjp=_ldl_factor_vjp, out_type=OUT_TYPE,
    differentiable=(True, False, False), out_reported_as="aten::linalg_ldl_factor_ex",
    doc="Bunch and Kaufman's A = P L D Lᵀ Pᵀ in LAPACK's compact form, and `info`.")


@op("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
    out_type=OUT_TYPE)
def ldl_factor(self: Tensor, hermitian: bool) -> Any:
    """The factors of a symmetric (or Hermitian) matrix that need not be definite."""
    LD, pivots, info = ldl_factor_ex(self, hermitian=hermitian)
    raise_failure(info, "torch.linalg.ldl_factor", lapack.SINGULAR_D)
    return LD, pivots


def _check_ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Any:
    check_square(LD, "torch.linalg.ldl_solve")
    check_is_floating(LD, "torch.linalg.ldl_solve")
    if B._array.ndim < 2:
        raise RuntimeError("torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but "
                           f"it has {B._array.ndim} dimensions instead")
    check_solve(B, LD, "torch.linalg.ldl_solve")
    if LD._array.shape[:-1] != pivots._array.shape:
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be "
                           "the same, but got pivots with shape "
                           f"{list(pivots._array.shape)} instead")
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError("torch.linalg.ldl_solve: Expected pivots to be integers. Got "
                           f"{type_name(pivots.dtype)}")
    check_floating(LD, "torch.linalg.ldl_solve", "ldl_solve_kernel_cpu")
    return LD, pivots, B, hermitian


def _ldl_solve_vjp(grad: Tensor, LD: Tensor, pivots: Tensor, hermitian: bool) -> Tensor:
    if hermitian:
        return _ldl_solve(LD, pivots, grad, True)
    return conjugated(_ldl_solve(LD, pivots, conjugated(grad), False))


_ldl_solve = op("_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian) -> Tensor",
                kernel=lapack.ldl_solve, kernel_checks=True, canonical=_check_ldl_solve,
                core="(n,n),(n),(n,k)->(n,k)",
                batch=by_factors(lambda: _ldl_solve), d_B=_ldl_solve_vjp, function=False,
                method=False, out=False)


def _solve_by_factors(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    """The same, where derivatives by the factors may be wanted."""
    P, L, D, _, _ = _unpack_factors(LD, pivots, hermitian)
    X = solve_matrices(D, triangular(L, matmul(P, B), False, True))
    return matmul(transpose(P, -2, -1), triangular(_transpose_factor(L, hermitian), X, True, True))


@op("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    out_type=OUT_TYPE, out_reported_as="aten::linalg_ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool) -> Tensor:
    """The solution of A X = B from what `ldl_factor` gave for A."""
    if not differentiating(LD):
        return _ldl_solve(LD, pivots, B, hermitian)
    _check_ldl_solve(LD, pivots, B, hermitian)
    return _solve_by_factors(LD, pivots, B, hermitian)
