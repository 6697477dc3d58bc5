"""Inverses, least squares and determinants, over any leading dimensions.

The rules are those of Giles (2008) and, for the pseudo-inverse, of Golub and Pereyra, The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate,
1973.
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau.core.promotion import type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.kernels.linalg import lapack, orthogonal
from flambeau.kernels.refused import characters
from flambeau.ops.coercion import values_below
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.linalg.decompositions import linalg_svd
from flambeau.ops.linalg.lu import linalg_lu_solve, lu_factor_ex
from flambeau.ops.linalg.solvers import holds_vectors, in_front, solve_matrices
from flambeau.ops.linalg.support import (
    add_terms,
    adjoint,
    check_floating,
    check_lapack,
    check_square,
    conj,
    differentiating,
    identity,
    matmul,
    raise_failure,
    scale_columns,
    with_gradient_by_columns,
)
from flambeau.ops.out_types import CASTABLE_RESULT, OUT_DEVICE, OUT_TYPE
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.pointwise.elementary import log
from flambeau.ops.reduction.sums import prod as prod_of
from flambeau.ops.reduction.sums import products_of_others, sum
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.diagonal import diag_embed, diagonal, tril
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import movedim, squeeze, unsqueeze

# ---- inverses -----------------------------------------------------------------------------------


def _inv_vjp(grad: Any, inverse: Tensor) -> Any:
    if grad[0] is None:
        return [None]
    H = adjoint(inverse)
    return [-matmul(H, matmul(grad[0], H))]


def _check_inv(A: Tensor, check_errors: bool) -> Any:
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv")
    return A, check_errors


inv_ex = op(
    "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    kernel=lapack.inv_ex, kernel_checks=True, canonical=_check_inv, core="(n,n)->(n,n),()",
    vjp=_inv_vjp, differentiable=(True, False), out_type=OUT_TYPE, out_device=OUT_DEVICE,
    autocast="full",
    jvp=lambda A_t, inverse: [-matmul(inverse, matmul(A_t, inverse)), None],
    doc="`inv`, and for each matrix 0 or the number of its first zero pivot.")


@op("linalg_inv(Tensor A) -> Tensor", out_type=OUT_TYPE, out_device=OUT_DEVICE,
    out_reported_as="linalg_inv_ex", autocast="full",
    aliases=("inverse(Tensor self) -> Tensor",))
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices.

    >>> import flambeau
    >>> flambeau.linalg.inv(flambeau.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    found, info = inv_ex(A)
    raise_failure(info, "linalg.inv", lapack.NO_INVERSE)
    return found


@op("linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
    out_cast=CASTABLE_RESULT.replace("{name}", "tensorinv"), out_reported_as=None, out_rows=True,
    autocast="full")
def tensorinv(self: Tensor, ind: int) -> Tensor:
    """The inverse for `tensordot(·, ind)`: the first `ind` dimensions against the rest."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = self._array.shape
    rows, columns = prod(shape[:ind]), prod(shape[ind:])
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                           f"prod(self.shape[:ind]), but got {columns} != {rows}")
    found, info = inv_ex(reshape(self, (rows, rows)))
    raise_failure(info, "inv", lapack.NO_INVERSE)
    return reshape(found, (*shape[ind:], *shape[:ind]))


# ---- pseudo-inverses ----------------------------------------------------------------------------


def pinv_vjp(g: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """The gradient of A through P = A⁺, where the rank does not change."""
    PH, gH = adjoint(P), adjoint(g)
    if A._array.shape[-2] <= A._array.shape[-1]:        # the products in between are small
        K = matmul(gH, P)
        right = matmul(K, PH)
        return -adjoint(matmul(P, K)) + right - matmul(matmul(A, P), right) \
            + matmul(matmul(PH, P), gH - matmul(K, A))
    K = matmul(P, gH)
    left = matmul(PH, K)
    return -adjoint(matmul(K, P)) + matmul(matmul(gH - matmul(A, K), P), PH) \
        + left - matmul(matmul(left, P), A)


def _linalg_pinv_vjp(grad: Tensor, self: Tensor, result: Tensor, hermitian: bool) -> Tensor:
    if not hermitian:
        return pinv_vjp(grad, self, result)
    read = tril(self, -1)                   # only this triangle counts, and the real diagonal
    middle = diagonal(self, 0, -2, -1)
    if self._array.dtype.kind in "cW":
        middle = cast(real_part(middle), self._array.dtype)
    return pinv_vjp(grad, read + adjoint(read) + diag_embed(middle), result)


def _check_pinv(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if self._array.ndim < 2 or self._array.dtype.char not in characters("fc"):
        raise RuntimeError(f"linalg.pinv({type_name(self.dtype)}{{{list(self._array.shape)}}}): "
                           "expected a tensor with 2 or more dimensions of float, double, cfloat "
                           "or cdouble types")
    if hermitian and self._array.size:
        check_square(self, "linalg.eigh")
    return self, atol, rtol, hermitian


def _pinv_batched(size: int, dims: Any, self: Tensor, atol: Any, rtol: Any,
                  hermitian: bool) -> Any:
    return _pinv(movedim(self, dims[0], 0), atol, rtol, hermitian), 0


_pinv = op("_pinv(Tensor self, object atol, object rtol, bool hermitian) -> Tensor",
           kernel=orthogonal.pinv, kernel_checks=True, canonical=_check_pinv,
           d_self=_linalg_pinv_vjp, batch=_pinv_batched, node="LinalgPinvBackward0",
           function=False, method=False, out=False)


def numbers(limit: Any, name: str) -> Any:
    """A tolerance, a number or a tensor of them, as NumPy takes it."""
    if isinstance(limit, Tensor):
        if limit.dtype.is_complex:
            raise RuntimeError(f"{name} tensor of complex type is not supported. Got "
                               f"{type_name(limit.dtype)}")
        return limit.detach()._array if type(limit) in plain_types or limit.ndim else limit.item()
    return limit


@op("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False) -> Tensor", out_cast=CASTABLE_RESULT)
def pinv(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    """The Moore-Penrose inverse; singular values up to max(atol, rtol σ₁) count as zero.

    >>> import flambeau
    >>> flambeau.linalg.pinv(flambeau.tensor([[2.0, 0.0]]))
    tensor([[0.5000],
            [0.0000]])
    """
    if atol is not None and rtol is None:       # that is made of the type's precision
        rows, columns = self.size(-2), self.size(-1)
        if rows and columns and self.dtype.kind not in ("f", "c"):
            raise RuntimeError("This function doesn't handle types other than float and double")
    return _pinv(self, numbers(atol, "torch.linalg.pinv: atol"),
                 numbers(rtol, "torch.linalg.pinv: rtol"), hermitian)


@op("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    overload_of=pinv, out_cast=CASTABLE_RESULT)
def _pinv_rcond(self: Tensor, rcond: Any, hermitian: bool) -> Tensor:
    return _pinv(self, None, numbers(rcond, "torch.linalg.pinv: rcond"), hermitian)


@op("pinverse(Tensor self, float rcond=1e-15) -> Tensor", out=False, autocast="full")
def pinverse(self: Tensor, rcond: float) -> Tensor:
    """`linalg.pinv`, with singular values up to rcond · σ₁ counted as zero."""
    return _pinv(self, None, rcond, False)


# ---- least squares ------------------------------------------------------------------------------


def _check_lstsq(self: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> Any:
    name = "torch.linalg.lstsq"
    m, n = self._array.ndim, b._array.ndim
    if m < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not n:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if self._array.dtype != b._array.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got "
                           f"input's dtype {type_name(self.dtype)} and other's dtype "
                           f"{type_name(b.dtype)}")
    if not 0 <= m - n <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and "
                           "(input.dim() - other.dim()) <= 1")
    vector = m - 1 == n and b._array.shape == self._array.shape[:-1]
    if not vector and self._array.shape[-2] != b._array.shape[-2 if n > 1 else -1]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size(-{1 + (n > 1)})")
    # a batch of right sides that lacks a dimension counts as one of vectors here
    broadcast_shapes(self._array.shape[:-2], b._array.shape[:n - 2 if n == m else n - 1])
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, "
                           "gelss)")
    check_lapack(self)
    return self, b, rcond, driver


def _lstsq_vjp(grad: Any, self: Tensor, b: Tensor, solution: Tensor) -> Any:
    gX, gL = grad[0], grad[1]
    gA = gB = None
    vector = holds_vectors(self._array.shape, b._array.shape)
    if vector:
        gX, b, solution = (None if t is None else unsqueeze(t, -1) for t in (gX, b, solution))
    if gX is not None:
        P = pinv(self)
        gB = matmul(adjoint(P), gX)
        gA = pinv_vjp(matmul(gX, adjoint(b)), self, P)
    if gL is not None and gL._array.size:
        # Σ |A X - B|²: at the minimum X does not count
        rest = scale_columns(matmul(self, solution) - b, 2 * gL)
        gA, gB = add_terms(gA, matmul(rest, adjoint(solution))), add_terms(gB, -rest)
    return [gA, squeeze(gB, -1) if vector and gB is not None else gB]


def _lstsq_batched(size: int, dims: Any, self: Tensor, b: Tensor, rcond: Any, driver: Any) -> Any:
    a_shape, b_shape = (t._array.shape if d is None else t._array.shape[:d] + t._array.shape[d + 1:]
                        for t, d in zip((self, b), dims))
    vector = len(a_shape) - 1 == len(b_shape) and b_shape == a_shape[:-1]
    X, residuals, rank, values = lstsq.op.call(
        *in_front(size, dims, (self, unsqueeze(b, -1) if vector else b)), rcond, driver)
    there = residuals._array.ndim > 1
    if vector:
        X = squeeze(X, -1)
    return (X, residuals, rank, values), [0, 0 if there else None, None if driver == "gels" else 0,
                                          0 if values._array.ndim > 1 else None]


lstsq = op(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
    "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    kernel=orthogonal.lstsq, kernel_checks=True, canonical=_check_lstsq, vjp=_lstsq_vjp,
    batch=_lstsq_batched, differentiable=(True, True, False, False), autocast="full",
    out_rows="occupied",
    out_cast="torch.linalg.lstsq: Expected solution to be safely castable from {found} dtype, "
    "but got solution with dtype {out}",
    doc="""The X of least norm that minimises |A X - B|, with what the LAPACK driver ("gelsy",
    "gels", "gelsd" or "gelss") tells: squared residuals, rank, singular values.

    >>> import flambeau
    >>> A = flambeau.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x = flambeau.linalg.lstsq(A, flambeau.tensor([[1.0], [3.0], [5.0]])).solution
    >>> flambeau.allclose(x, flambeau.tensor([[1.0], [2.0]]))
    True
    """)


# ---- determinants -------------------------------------------------------------------------------


def _check_square_floats(name: str, kernel: str = "") -> Any:
    def canonical(A: Tensor) -> Any:
        check_square(A, name)
        check_floating(A, name, kernel)
        return (A,)
    return canonical


def _det_vjp(grad: Tensor, A: Tensor) -> Tensor:
    """grad · the conjugate cofactors: det A · A⁻ᴴ, both from one LU factorisation, so that what is
    wrong with a tiny pivot cancels; without pivots to divide by, from the singular values."""
    n = A._array.shape[-1]
    if not A._array.size:
        return zeros_like(A)
    if differentiating(A):
        A = with_gradient_by_columns(A)
    LU, pivots, _ = lu_factor_ex(A)
    sizes = np.abs(np.diagonal(values_below(LU), 0, -2, -1))
    if (sizes.min(-1) > 1e-3 * np.finfo(sizes.dtype).eps * sizes.max(-1)).all():
        swaps = sum(pivots != wrap(np.arange(1, n + 1, dtype=np.int32)), -1)
        found = mul(prod_of(diagonal(LU, 0, -2, -1), -1), 1 - 2 * (swaps % 2))
        right = unsqueeze(unsqueeze(grad * conj(found), -1), -1) * identity(n, A)
        return linalg_lu_solve(LU, pivots, right, adjoint=True)
    U, S, Vh = linalg_svd(A, False)
    turn = conj(det(U) * det(Vh))
    others = products_of_others(S, S._array.ndim - 1)
    return mul(matmul(scale_columns(U, others), Vh), unsqueeze(unsqueeze(grad * turn, -1), -1))


det = op(
    "linalg_det(Tensor A) -> Tensor", kernel=lapack.det, kernel_checks=True,
    canonical=_check_square_floats("linalg.det", "lu_cpu"), core="(n,n)->()", d_A=_det_vjp,
    out_type=OUT_TYPE, out_device=OUT_DEVICE, out_reported_as="_linalg_det", aten=(AtenForm(
        "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)"),),
    doc="""The determinant of square matrices.

    >>> import flambeau
    >>> flambeau.linalg.det(flambeau.tensor([[2.0, 1.0], [0.0, 3.0]]))
    tensor(6.)
    """)


@op("det(Tensor self) -> Tensor", out=False)
def old_det(self: Tensor) -> Tensor:
    """`linalg.det`."""
    return det(self)


def _slogdet_vjp(grad: Any, A: Tensor, sign: Tensor) -> Any:
    """With z = tr(A⁻¹ dA), d log|det| = Re z and d sign = i · sign · Im z."""
    g_sign, g_log = grad
    if A._array.dtype.kind in "cW":
        turned = None if g_sign is None else cast(
            real_part(1j * conjugated(g_sign) * sign), sign._array.dtype) * 1j
        g = add_terms(None if g_log is None else cast(g_log, sign._array.dtype), turned)
    else:
        g = g_log
    if g is None:
        return [None]
    n = A._array.shape[-1]
    return [solve_matrices(adjoint(A), unsqueeze(unsqueeze(g, -1), -1) * identity(n, A))]


linalg_slogdet = op(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", kernel=lapack.slogdet,
    kernel_checks=True, canonical=_check_square_floats("linalg.slogdet"), core="(n,n)->(),()",
    vjp=_slogdet_vjp, out_type=OUT_TYPE, out_reported_as="_linalg_slogdet", aten=(AtenForm(
        "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)"),),
    doc="""The sign (or phase) of the determinant, and the logarithm of its absolute value.

    >>> import flambeau
    >>> flambeau.linalg.slogdet(flambeau.eye(2) * -1).logabsdet
    tensor(0.)
    """)


@op("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", out_type=OUT_TYPE,
    out_reported_as="_linalg_slogdet")
def slogdet(self: Tensor) -> Any:
    """`linalg.slogdet`."""
    return linalg_slogdet(self)


@op("logdet(Tensor self) -> Tensor", out=False)
def logdet(self: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where that is negative.

    >>> import flambeau
    >>> flambeau.logdet(flambeau.eye(3))
    tensor(0.)
    """
    check_square(self, "logdet")
    check_floating(self, "logdet")
    sign, size = linalg_slogdet(self)
    if self._array.dtype.kind in "cW":
        return log(sign) + size
    return where(sign < 0, float("nan"), size)
