"""Linear equations, inverses and determinants, over any leading dimensions.

The rules are those of Giles (2008) and, for the pseudo-inverse, of Golub and Pereyra, The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate,
1973.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau import return_types
from flambeau.core.dtypes import FLOATING
from flambeau.core.op import primitive
from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.kernels import lapack
from flambeau.kernels.refused import characters
from flambeau.ops.linalg.decompositions import (
    _lu_factor,
    _svd,
    permutation_matrix,
    plus,
    unpacked,
)
from flambeau.ops.linalg.support import (
    HIDDEN,
    adjoint,
    by_columns,
    check_fit,
    check_floating,
    check_lapack,
    check_matrix,
    check_same_type,
    check_solve,
    check_square,
    composed,
    conj,
    differentiating,
    failures,
    identity,
    matmul,
    raise_failure,
    scale_columns,
    transpose,
    values_of,
)
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.pointwise.elementary import log
from flambeau.ops.reduction.sums import prod as prod_of
from flambeau.ops.reduction.sums import products_of_others, sum
from flambeau.ops.refusals import refusing
from flambeau.ops.view.diagonal import diag_embed, diagonal, tril, triu
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import movedim, squeeze, unsqueeze

SINGULAR = "The solver failed because the input matrix is singular."
NO_INVERSE = ("The diagonal element {} is zero, the inversion could not be completed because the "
              "input matrix is singular.")

# ---- A X = B ------------------------------------------------------------------------------------


def _solve_back(grad: Any, needs: Any, A: Tensor, result0: Tensor) -> Any:
    g = grad[0]
    if g is None:
        return [None, None]
    gB = solved(adjoint(A), g)
    return [-matmul(gB, adjoint(result0)) if needs[0] else None, gB]


def _solve_ahead(A: Tensor, B: Tensor, A_t: Tensor, B_t: Tensor, result0: Tensor) -> Any:
    return [solved(A, B_t - matmul(A_t, result0)), None]


@primitive(lapack.solve, tensors=("A", "B"), core="(n,n),(n,k)->(n,k),()", returns=tuple,
           vjp=_solve_back, jvp=_solve_ahead, differentiable=(True, False),
           name="linalg_solve_ex", **HIDDEN)
def _solve(A: Tensor, B: Tensor) -> Any:
    return A, B


def solved(A: Tensor, B: Tensor) -> Tensor:
    """A⁻¹ B of matrices, unchecked."""
    return _solve(A, B)[0]


def _solve_any(A: Tensor, B: Tensor, left: bool, name: str) -> tuple[Tensor, Tensor]:
    check_square(A, name)
    check_floating(A, name, "lu_cpu")
    check_same_type(A, B, name)
    a, b = A._array.shape, B._array.shape
    # B holds vectors if it is one, or has the shape of A without its last dimension
    vector = len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])
    if vector and not left:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported "
                           f"for left=False. In this case {name} is equivalent to B / "
                           "A.squeeze(-1)")
    if vector:
        B = unsqueeze(B, -1)
    check_fit(A, B, left, name)
    broadcast_shapes(A._array.shape[:-2], B._array.shape[:-2])
    if left:
        X, info = _solve(A, B)
    else:
        X, info = _solve(transpose(A, -2, -1), transpose(B, -2, -1))
        X = transpose(X, -2, -1)
    return (squeeze(X, -1) if vector else X), info


@composed(namespace="linalg")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """`solve`, and for each matrix 0 or the number of its first zero pivot."""
    X, info = _solve_any(A, B, left, "linalg.solve")
    if check_errors:
        raise_failure(info, "torch.linalg.solve_ex", SINGULAR)
    return return_types.linalg_solve_ex(X, info)


@composed(namespace="linalg")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A X = B (or X A = B): A (…, n, n), B (…, n, k) or vectors (…, n).

    >>> import flambeau
    >>> flambeau.linalg.solve(flambeau.tensor([[2.0, 0.0], [0.0, 4.0]]), flambeau.ones(2))
    tensor([0.5000, 0.2500])
    """
    X, info = _solve_any(A, B, left, "linalg.solve")
    raise_failure(info, "torch.linalg.solve", SINGULAR)
    return X


# ---- triangular equations -----------------------------------------------------------------------


def _part(X: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    return triu(X, int(unitriangular)) if upper else tril(X, -int(unitriangular))


def _triangular_back(grad: Tensor, needs: Any, A: Tensor, result: Tensor, upper: bool,
                     unitriangular: bool) -> Any:
    gB = triangular(adjoint(A), grad, not upper, unitriangular)
    gA = _part(-matmul(gB, adjoint(result)), upper, unitriangular) if needs[0] else None
    return [gA, gB]


def _triangular_ahead(A: Tensor, B: Tensor, A_t: Tensor, B_t: Tensor, result: Tensor, upper: bool,
                      unitriangular: bool) -> Tensor:
    moved = matmul(_part(A_t, upper, unitriangular), result)
    return triangular(A, B_t - moved, upper, unitriangular)


@primitive(lapack.solve_triangular, tensors=("A", "B"), core="(n,n),(n,k)->(n,k)",
           vjp=_triangular_back, jvp=_triangular_ahead, name="linalg_solve_triangular", **HIDDEN)
def _triangular(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> Any:
    return A, B, upper, unitriangular


def triangular(A: Tensor, B: Tensor, upper: bool, unitriangular: bool = False) -> Tensor:
    """A⁻¹ B of a triangular A. `adjoint(A)` of a lower A is upper: `upper` says what A is here."""
    return _triangular(A, B, upper, unitriangular)


@composed(namespace="linalg")
@refusing("bBilUeW8", "triangular_solve_cpu")
@one_node(name="LinalgSolveTriangularBackward0")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Tensor:
    """X with A X = B (or X A = B), where A is triangular: the other triangle is not read, nor, if
    `unitriangular`, the diagonal.

    >>> import flambeau
    >>> A = flambeau.tensor([[2.0, 1.0], [0.0, 1.0]])
    >>> flambeau.linalg.solve_triangular(A, flambeau.ones(2, 1), upper=True)
    tensor([[0.],
            [1.]])
    """
    name = "linalg.solve_triangular"
    check_square(A, name)
    check_matrix(B, name, "B")
    check_same_type(A, B, name)
    check_fit(A, B, left, name)
    if left:
        return _triangular(A, B, upper, unitriangular)
    flipped = _triangular(transpose(A, -2, -1), transpose(B, -2, -1), not upper, unitriangular)
    return by_columns(transpose(flipped, -2, -1))


@composed(method=True)
@one_node
def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Any:
    """`linalg.solve_triangular`, by its older name; it also gives a copy of A."""
    for name, tensor in (("b", b), ("A", A)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"torch.triangular_solve: Expected {name} to have at least 2 "
                               f"dimensions, but it has {tensor._array.ndim} dimensions instead")
    check_solve(b, A, "triangular_solve")
    if A._array.dtype not in FLOATING or A._array.dtype.itemsize < 4:
        raise NotImplementedError('"triangular_solve_cpu" not implemented for '
                                  f"'{type_name(A.dtype)}'")
    M, above = (A.transpose(-2, -1), not upper) if transpose else (A, upper)
    return return_types.triangular_solve(_triangular(M, b, above, unitriangular),
                                         by_columns(basis.clone(A)))


@composed(method=True)
@refusing("bBilUeW8")
@one_node
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, from the Cholesky factor of A."""
    for name, tensor in (("b", B), ("u", L)):
        if tensor._array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has "
                               f"{tensor._array.ndim} dimensions instead")
    check_solve(B, L, "cholesky_solve")
    low = adjoint(L) if upper else L
    return triangular(adjoint(low), triangular(low, B, False), True)


@composed(method=True)
@refusing("bBilUeW8", "cholesky_inverse_out_cpu")
@one_node
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor."""
    check_square(L, "cholesky_inverse")
    low = adjoint(L) if upper else L
    inverted = triangular(low, identity(L._array.shape[-1], L), False)
    return by_columns(matmul(adjoint(inverted), inverted))


def _lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint_of: bool,
              name: str) -> Tensor:
    check_square(LU, name, "LU")
    check_matrix(B, name, "B")
    if pivots._array.dtype != np.int32:
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_same_type(LU, B, name, "LU", "B")
    check_fit(LU, B, left, name)
    if pivots._array.shape != LU._array.shape[:-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of "
                           "the matrix")
    if not left:
        # X A = B is Aᴴ Xᴴ = Bᴴ
        return adjoint(_lu_solve(LU, pivots, adjoint(B), True, not adjoint_of, name))
    if not differentiating(LU, B) and (LU._array.dtype.kind != "c" or not adjoint_of):
        found = lapack.small_lu_solve(LU._array, pivots._array, B._array, adjoint_of)
        if found is not None:
            return wrap(found)
    L, U = unpacked(LU)
    P = permutation_matrix(pivots, LU._array.shape[-1], LU._array.dtype)
    if adjoint_of:
        inner = triangular(adjoint(U), B, False)
        return matmul(P, triangular(adjoint(L), inner, True, True))
    return triangular(U, triangular(L, matmul(transpose(P, -2, -1), B), False, True), True)


@composed(namespace="linalg", name="lu_solve")
@one_node(name="LinalgLuSolveBackward0", inputs="LU B")
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True,
                    adjoint: bool = False) -> Tensor:
    """X with A X = B (or X A = B, or with Aᴴ) from what `lu_factor` gave for A."""
    return _lu_solve(LU, pivots, B, left, adjoint, "linalg.lu_solve")


@composed(method=True)
@refusing("bBilUe", "torch.linalg.lu_solve: Expected a floating point or complex tensor "
          "as input. Got {}")
@one_node(name="LinalgLuSolveBackward0", inputs="LU_data b")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve`, by its older name."""
    return _lu_solve(LU_data, LU_pivots, b, True, False, "linalg.lu_solve")


# ---- inverses -----------------------------------------------------------------------------------


def _inv_back(grad: Any, result0: Tensor) -> Any:
    if grad[0] is None:
        return [None]
    H = adjoint(result0)
    return [-matmul(H, matmul(grad[0], H))]


@primitive(lapack.inv, core="(n,n)->(n,n),()", returns=tuple, vjp=_inv_back,
           differentiable=(True, False), name="linalg_inv_ex", **HIDDEN,
           jvp=lambda self_t, result0: [-matmul(result0, matmul(self_t, result0)), None])
def _inv(input: Tensor) -> Any:
    return (input,)


def _inverse(A: Tensor, name: str) -> Tensor:
    check_square(A, name)
    check_floating(A, name)
    found, info = _inv(A)
    raise_failure(info, name, NO_INVERSE)
    return found


@composed(namespace="linalg")
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices.

    >>> import flambeau
    >>> flambeau.linalg.inv(flambeau.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return _inverse(A, "linalg.inv")


@composed(namespace="linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """`inv`, and for each matrix 0 or the number of its first zero pivot."""
    check_square(A, "linalg.inv_ex")
    check_floating(A, "linalg.inv")
    found, info = _inv(A)
    if check_errors:
        raise_failure(info, "linalg.inv_ex", NO_INVERSE)
    return return_types.linalg_inv_ex(found, info)


@composed(method=True)
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv`."""
    return _inverse(input, "linalg.inv")


def pinv_back(g: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """The gradient of A through P = A⁺, where the rank does not change."""
    AH, PH, gH = adjoint(A), adjoint(P), adjoint(g)
    result = -matmul(PH, matmul(g, PH))
    left, right = matmul(gH, matmul(P, PH)), matmul(matmul(PH, P), gH)
    result = result + left - matmul(PH, matmul(AH, left))
    return result + right - matmul(right, matmul(AH, PH))


def _pinv_kernel(self: np.ndarray, atol: Any, rtol: Any, hermitian: bool) -> np.ndarray:
    if not self.size:
        return np.zeros((*self.shape[:-2], *self.shape[:-3:-1]), self.dtype)
    if hermitian:
        values, vectors = lapack.eigh(self, "L")
        size, left = np.abs(values), vectors * np.sign(values)[..., None, :]
        right = np.conj(np.swapaxes(vectors, -1, -2))
    else:
        left, size, right = lapack.svd(self, False)
    limit = tolerance(self, size, atol, rtol)
    keep = size > limit[..., None]
    reciprocal = np.where(keep, 1 / np.where(keep, size, 1), 0).astype(size.dtype)
    back = np.conj(np.swapaxes(right, -1, -2)) * reciprocal[..., None, :]
    return np.ascontiguousarray(np.matmul(back, np.conj(np.swapaxes(left, -1, -2))))


def tolerance(a: np.ndarray, size: np.ndarray, atol: Any, rtol: Any) -> np.ndarray:
    """max(atol, rtol · the largest singular value); by default rtol is eps · max(m, n)."""
    largest = size.max(-1, initial=0) if size.shape[-1] else np.zeros(size.shape[:-1], size.dtype)
    eps = np.finfo(size.dtype).eps * max(a.shape[-2:])
    absolute = np.asarray(0.0 if atol is None else atol)
    if rtol is None:
        relative: Any = np.where(absolute > 0, 0.0, eps)
    else:
        relative = np.asarray(rtol)
    return np.maximum(absolute, relative * largest).astype(size.dtype)


def _pinv_batched(size: int, dims: Any, self: Tensor, atol: Any, rtol: Any,
                  hermitian: bool) -> Any:
    return _pinv(movedim(self, dims[0], 0), atol, rtol, hermitian), 0


def _pinv_gradient(grad: Tensor, self: Tensor, result: Tensor, hermitian: bool) -> Tensor:
    if not hermitian:
        return pinv_back(grad, self, result)
    read = tril(self, -1)                   # only this triangle counts, and the real diagonal
    middle = diagonal(self, 0, -2, -1)
    if self._array.dtype.kind in "cW":
        middle = basis.cast(basis.real(middle), self._array.dtype)
    return pinv_back(grad, read + adjoint(read) + diag_embed(middle), result)


@primitive(_pinv_kernel, d_self=_pinv_gradient,
           batch=_pinv_batched, name="linalg_pinv", **HIDDEN)
def _pinv(input: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Any:
    return input, atol, rtol, hermitian


def numbers(limit: Any) -> Any:
    """A tolerance, a number or a tensor of them, as NumPy takes it."""
    return limit.detach()._array if isinstance(limit, Tensor) else limit


@composed(namespace="linalg")
def pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
         rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol σ₁) count as zero.

    >>> import flambeau
    >>> flambeau.linalg.pinv(flambeau.tensor([[2.0, 0.0]]))
    tensor([[0.5000],
            [0.0000]])
    """
    if A._array.ndim < 2 or A._array.dtype.char not in characters("fc"):
        raise RuntimeError(f"linalg.pinv({type_name(A.dtype)}{{{list(A._array.shape)}}}): expected "
                           "a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
                           "types")
    rtol = rcond if rtol is None else rtol
    if hermitian:
        check_square(A, "linalg.pinv")
    return _pinv(A, numbers(atol), numbers(rtol), hermitian)


@composed(method=True)
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`, with singular values up to rcond · σ₁ counted as zero."""
    return pinv(input, rcond)


# ---- least squares ------------------------------------------------------------------------------


def _lstsq_back(grad: Any, A: Tensor, B: Tensor, result0: Tensor) -> Any:
    gX, gL = grad[0], grad[1]
    gA = gB = None
    if gX is not None:
        P = pinv(A)
        gB = matmul(adjoint(P), gX)
        gA = pinv_back(matmul(gX, adjoint(B)), A, P)
    if gL is not None and gL._array.size:
        # Σ |A X - B|²: at the minimum X does not count
        rest = scale_columns(matmul(A, result0) - B, 2 * gL)
        gA, gB = plus(gA, matmul(rest, adjoint(result0))), plus(gB, -rest)
    return [gA, gB]


def _lstsq_batched(size: int, dims: Any, A: Tensor, B: Tensor, rcond: Any, driver: str) -> Any:
    rank = max(t._array.ndim - (d is not None) for t, d in zip((A, B), dims))
    whole = []
    for t, d in zip((A, B), dims):
        if d is not None:
            shape = movedim(t, d, 0)._array.shape
            t = reshape(movedim(t, d, 0), (size, *(1,) * (rank + 1 - len(shape)), *shape[1:]))
        whole.append(t)
    found = _lstsq(*whole, rcond, driver)
    return found, [0, 0 if found[1]._array.ndim > 1 else None,
                   None if driver == "gels" else 0, 0 if found[3]._array.ndim > 1 else None]


@primitive(lapack.lstsq, tensors=("A", "B"), returns=tuple, vjp=_lstsq_back,
           batch=_lstsq_batched, differentiable=(True, True, False, False), name="linalg_lstsq",
           **HIDDEN)
def _lstsq(A: Tensor, B: Tensor, rcond: Any, driver: str) -> Any:
    return A, B, rcond, driver


@composed(namespace="linalg")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The X of least norm that minimises |A X - B|, with what the LAPACK driver ("gelsy", "gels",
    "gelsd" or "gelss") tells: squared residuals, rank, singular values.

    >>> import flambeau
    >>> A = flambeau.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x = flambeau.linalg.lstsq(A, flambeau.tensor([[1.0], [3.0], [5.0]])).solution
    >>> flambeau.allclose(x, flambeau.tensor([[1.0], [2.0]]))
    True
    """
    name = "torch.linalg.lstsq"
    if A._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not B._array.ndim:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    check_lapack(A)
    if A._array.dtype != B._array.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got "
                           f"input's dtype {A.dtype} and other's dtype {B.dtype}")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, "
                           "gelss)")
    vector = A._array.ndim - 1 == B._array.ndim and B._array.shape == A._array.shape[:-1]
    if vector:
        B = unsqueeze(B, -1)
    elif A._array.shape[-2] != B._array.shape[-2 if B._array.ndim > 1 else -1]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-"
                           f"{2 if B._array.ndim > 1 else 1})")
    X, residuals, rank, values = _lstsq(A, B, rcond, driver or "gelsy")
    if vector:
        X = squeeze(X, -1)
        residuals = squeeze(residuals, -1) if residuals._array.ndim > 1 else residuals
    return return_types.linalg_lstsq(X, residuals, rank, values)


# ---- determinants -------------------------------------------------------------------------------


def _det_back(grad: Tensor, self: Tensor) -> Tensor:
    """grad · the conjugate cofactors: det A · A⁻ᴴ, both from one LU factorisation, so that what is
    wrong with a tiny pivot cancels; without pivots to divide by, from the singular values."""
    n = self._array.shape[-1]
    if not n:
        return basis.zeros_like(self)
    LU, pivots, _ = _lu_factor(self)
    sizes = np.abs(np.diagonal(values_of(LU), 0, -2, -1))
    if (sizes.min(-1) > 1e-3 * np.finfo(sizes.dtype).eps * sizes.max(-1)).all():
        swaps = sum(pivots != wrap(np.arange(1, n + 1, dtype=np.int32)), -1)
        found = mul(prod_of(diagonal(LU, 0, -2, -1), -1), 1 - 2 * (swaps % 2))
        right = unsqueeze(unsqueeze(grad * conj(found), -1), -1) * identity(n, self)
        return _lu_solve(LU, pivots, right, True, True, "det")
    U, S, Vh = _svd(self, False)
    turn = conj(_det(U) * _det(Vh))
    others = products_of_others(S, S._array.ndim - 1)
    return mul(matmul(scale_columns(U, others), Vh), unsqueeze(unsqueeze(grad * turn, -1), -1))


def _det_kernel(self: np.ndarray) -> Any:
    return np.asarray(np.linalg.det(self), self.dtype)


@primitive(_det_kernel, core="(n,n)->()", d_self=_det_back, name="linalg_det", **HIDDEN)
def _det(input: Tensor) -> Any:
    return (input,)


def _determinant(A: Tensor) -> Tensor:
    """The determinant of square matrices.

    >>> import flambeau
    >>> flambeau.linalg.det(flambeau.tensor([[2.0, 1.0], [0.0, 3.0]]))
    tensor(6.)
    """
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det", "lu_cpu")
    return _det(A)


linalg_det = composed(_determinant, namespace="linalg", name="det")
det = composed(lambda input: _determinant(input), method=True, name="det")
det.__doc__ = det.op.doc = "`linalg.det`."


def _slogdet_back(grad: Any, self: Tensor, result0: Tensor) -> Any:
    """With z = tr(A⁻¹ dA), d log|det| = Re z and d sign = i · sign · Im z."""
    g_sign, g_log = grad
    if self._array.dtype.kind in "cW":
        turned = None if g_sign is None else basis.cast(
            basis.real(1j * basis.conj(g_sign) * result0), result0._array.dtype) * 1j
        g = plus(None if g_log is None else basis.cast(g_log, result0._array.dtype), turned)
    else:
        g = g_log
    if g is None:
        return [None]
    n = self._array.shape[-1]
    return [solved(adjoint(self), unsqueeze(unsqueeze(g, -1), -1) * identity(n, self))]


def _slogdet_kernel(self: np.ndarray) -> Any:
    sign, size = np.linalg.slogdet(self)
    return np.asarray(sign, self.dtype), np.asarray(size, self.real.dtype)


@primitive(_slogdet_kernel, core="(n,n)->(),()", returns=tuple, vjp=_slogdet_back,
           name="linalg_slogdet", **HIDDEN)
def _slogdet(input: Tensor) -> Any:
    return (input,)


def _sign_and_log(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet")
    return _slogdet(A)


@composed(namespace="linalg", name="slogdet")
def linalg_slogdet(A: Tensor) -> Any:
    """The sign (or phase) of the determinant, and the logarithm of its absolute value.

    >>> import flambeau
    >>> flambeau.linalg.slogdet(flambeau.eye(2) * -1).logabsdet
    tensor(0.)
    """
    return return_types.linalg_slogdet(*_sign_and_log(A))


@composed(method=True)
def slogdet(input: Tensor) -> Any:
    """`linalg.slogdet`."""
    return return_types.slogdet(*_sign_and_log(input))


@composed(method=True)
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative.

    >>> import flambeau
    >>> flambeau.logdet(flambeau.eye(3))
    tensor(0.)
    """
    check_square(input, "logdet")
    check_floating(input, "logdet")
    sign, size = _slogdet(input)
    if input._array.dtype.kind in "cW":
        return log(sign) + size
    return where(sign < 0, float("nan"), size)


# ---- equations between tensors ------------------------------------------------------------------


@composed(namespace="linalg")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse for `tensordot(·, ind)`: the first `ind` dimensions against the rest."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = A._array.shape
    rows, columns = prod(shape[:ind]), prod(shape[ind:])
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           f"prod(self.shape[:ind]), but got {columns} != {rows}")
    check_floating(A, "linalg.inv")
    found, info = _inv(reshape(A, (rows, rows)))
    if failures(info) is not None:
        raise RuntimeError("Failed to invert the input tensor, because it is singular.")
    return reshape(found, (*shape[ind:], *shape[:ind]))


@composed(namespace="linalg")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first."""
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(-len(dims), 0)))
    rank, shape = B._array.ndim, A._array.shape
    rows, columns = prod(shape[:rank]), prod(shape[rank:])
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
                           f"== prod(self.shape[:other.ndim]), but got {columns} != {rows}")
    return reshape(solve(reshape(A, (rows, rows)), reshape(B, (-1,))), shape[rank:])

