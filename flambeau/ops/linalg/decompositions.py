"""Cholesky's factors, QR and singular values, over any leading dimensions, to any order.

Factors are unique only up to a choice (signs of columns, phases); gradients exist for functions
that do not depend on the choice. The rules follow

    Giles, An extended collection of matrix derivative results for forward and reverse mode
        automatic differentiation, 2008 (singular values)
    Murray, Differentiation of the Cholesky decomposition, 2016
    Walter and Lehmann, Algorithmic differentiation of linear algebra functions with application in
        optimum experimental design, 2010 (QR)
    Townsend, Differentiating the singular value decomposition, 2016

Each is one formula on tensors, so that it can be differentiated again.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau._support.settings import warn_once
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import AtenForm, op
from flambeau.kernels.linalg import lapack, orthogonal
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import values_below
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.linalg.solvers import triangular
from flambeau.ops.linalg.support import (
    add_terms,
    adjoint,
    check_floating,
    check_is_floating,
    check_matrix,
    check_square,
    constant,
    differentiating,
    matmul,
    off_diagonal,
    raise_failure,
    real_diagonal,
    refuse_elements,
    scale_columns,
    scale_rows,
    skew,
    with_type_of,
)
from flambeau.ops.out_types import CASTABLE_RESULT, OUT_DEVICE, OUT_TYPE
from flambeau.ops.view.diagonal import diag_embed, diagonal, tril, triu
from flambeau.ops.view.join import cat
from flambeau.ops.view.shape import movedim
from flambeau.ops.view.splitting import narrow

# ---- Cholesky -----------------------------------------------------------------------------------


def _check_cholesky(name: str) -> Any:
    def canonical(self: Tensor, *rest: Any) -> Any:
        check_square(self, name)
        if name == "cholesky":
            refuse(self._array, "bBilU8", "cholesky_cpu")
        refuse_elements(self, "8", "triu" if rest[0] else "tril")
        check_floating(self, name, "cholesky_cpu")
        return self, *rest
    return canonical


def _cholesky_vjp(grad: Any, L: Tensor, upper: bool) -> Any:
    """L⁻ᴴ S L⁻¹, with S = Lᴴ gL below the diagonal, half of it on it, and Hermitian above."""
    g = grad[0]
    if g is None:
        return [None]
    if upper:
        g, L = adjoint(g), adjoint(L)
    X = matmul(adjoint(L), g)
    S = (tril(X) + adjoint(tril(X, -1))) * 0.5
    return [triangular(L, triangular(adjoint(L), S, True), False, left=False)]


cholesky_ex = op(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
    "(Tensor L, Tensor info)", kernel=lapack.cholesky_ex, kernel_checks=True,
    canonical=_check_cholesky("linalg.cholesky"), core="(n,n)->(n,n),()", vjp=_cholesky_vjp,
    differentiable=(True, False), out_type=OUT_TYPE, out_device=OUT_DEVICE, autocast="full",
    doc="`cholesky` and, for each matrix, 0 or the order of the leading minor that is not positive."
)


@op("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", out_type=OUT_TYPE,
    out_device=OUT_DEVICE, out_reported_as="linalg_cholesky_ex", autocast="full")
def linalg_cholesky(self: Tensor, upper: bool) -> Tensor:
    """The lower triangular L with A = L Lᴴ (or upper U with A = Uᴴ U) of a positive-definite A.

    >>> import flambeau
    >>> flambeau.linalg.cholesky(flambeau.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    L, info = cholesky_ex(self, upper=upper)
    raise_failure(info, "linalg.cholesky", lapack.NOT_POSITIVE)
    return L


def _cholesky_kernel(a: np.ndarray, upper: bool) -> np.ndarray:
    warn_once("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed "
              "in a future PyTorch release.\nL = torch.cholesky(A)\nshould be replaced with\n"
              "L = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\nshould be "
              "replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will produce "
              "equivalent results for all valid (symmetric positive definite) inputs.")
    factor, info = lapack.cholesky_ex(a, upper, False)
    lapack.raise_failure(info, "cholesky", lapack.NOT_POSITIVE)
    return factor


cholesky = op(
    "cholesky(Tensor self, bool upper=False) -> Tensor", kernel=_cholesky_kernel,
    kernel_checks=True,
    canonical=_check_cholesky("cholesky"), core="(n,n)->(n,n)", out_cast=CASTABLE_RESULT,
    d_self=lambda grad, result, upper: _cholesky_vjp([grad], result, upper)[0], autocast="full",
    out_rows=True, doc="`linalg.cholesky`, by its older name.")


# ---- QR -----------------------------------------------------------------------------------------


def _qr_square_vjp(gQ: Any, gR: Any, Q: Tensor, R: Tensor) -> Any:
    """The gradient of A (m, n) with m >= n, A = Q R."""
    M = add_terms(None if gR is None else matmul(gR, adjoint(R)),
                  None if gQ is None else -matmul(adjoint(Q), gQ))
    T = triu(M)
    X = matmul(Q, T + adjoint(T) - diag_embed(with_type_of(real_diagonal(T), T)))
    X = add_terms(X, gQ)
    return triangular(adjoint(R), X, False, left=False)


def _qr_vjp(grad: Any, Q: Tensor, R: Tensor, mode: str) -> Any:
    gQ, gR = grad
    if gQ is None and gR is None:
        return [None]
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when "
                           "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                           "differentiate through linalg.qr.")
    m, n = Q._array.shape[-2], R._array.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and "
                           "nrows > ncols. Expected A to have nrows <= ncols, but got A of shape "
                           f"[..., {m}, {n}]")
    if m >= n:
        return [_qr_square_vjp(gQ, gR, Q, R)]
    # A = [X Y] with X square: X = Q U and V = Qᴴ Y
    U, V = narrow(R, -1, 0, m), narrow(R, -1, m, n - m)
    if gR is None:
        gU, gY = None, zeros_like(V)
    else:
        gU, gV = narrow(gR, -1, 0, m), narrow(gR, -1, m, n - m)
        gY = matmul(Q, gV)
        gQ = add_terms(gQ, matmul(matmul(Q, V), adjoint(gV)))
    return [cat([_qr_square_vjp(gQ, gU, Q, U), gY], -1)]


def _qr_batched(size: int, dims: Any, input: Tensor, mode: str) -> Any:
    found = linalg_qr(movedim(input, dims[0], 0), mode)
    return found, [None if mode == "r" else 0, 0]


def _check_qr(A: Tensor, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
                           "(default), 'r', or 'complete'")
    check_matrix(A, "linalg.qr")
    check_is_floating(A, "linalg.qr")
    refuse(A._array, "eW8", "geqrf_cpu")
    return A, mode


linalg_qr = op(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", kernel=orthogonal.qr,
    kernel_checks=True, canonical=_check_qr, vjp=_qr_vjp, batch=_qr_batched, out_type=OUT_TYPE,
    autocast="full", doc="""Q with orthonormal columns and upper triangular R, A = Q R.

    `mode` "reduced" gives Q (m, k) and R (k, n) with k = min(m, n), "complete" Q (m, m) and R
    (m, n), "r" only R.

    >>> import flambeau
    >>> Q, R = flambeau.linalg.qr(flambeau.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> flambeau.allclose(Q @ R, flambeau.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True
    """)


@op("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", out_type=OUT_TYPE,
    out_reported_as="linalg_qr", autocast="full")
def qr(self: Tensor, some: bool) -> Any:
    """`linalg.qr` with mode "reduced" or, if not `some`, "complete"."""
    warn_once("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future "
              "PyTorch release.\nThe boolean parameter 'some' has been replaced with a string "
              "parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced with\n"
              "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")
    return linalg_qr(self, "reduced" if some else "complete")


# ---- singular values ----------------------------------------------------------------------------


def check_phase(diag: Tensor, name: str, what: str) -> None:
    """Refuse a gradient that depends on the phases of complex vectors."""
    off = np.abs(values_below(diag).imag)
    if off.size and off.max() > 1e-2:
        raise RuntimeError(f"{name}: The {what} in the complex case are specified up to "
                           "multiplication by e^{i phi}. The specified loss function depends on "
                           "this quantity, so it is ill-defined.")


def _svd_vjp(grad: Any, U: Tensor, S: Tensor, Vh: Tensor) -> Any:
    gU, gS, gVh = grad
    m, k, n = U._array.shape[-2], S._array.shape[-1], Vh._array.shape[-1]
    if U._array.shape[-1] > k:
        U, gU = narrow(U, -1, 0, k), None if gU is None else narrow(gU, -1, 0, k)
    if Vh._array.shape[-2] > k:
        Vh, gVh = narrow(Vh, -2, 0, k), None if gVh is None else narrow(gVh, -2, 0, k)
    if gU is None and gVh is None:
        return [None if gS is None else matmul(scale_columns(U, gS), Vh)]
    left = None if gU is None else skew(matmul(adjoint(U), gU))
    right = None if gVh is None else skew(matmul(Vh, adjoint(gVh)))
    if U._array.dtype.kind in "cW":
        check_phase(diagonal(add_terms(left, right), 0, -2, -1), "svd_backward", "singular vectors")
    E = (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1)) \
        + constant(np.eye(k), S)
    off = off_diagonal(k, S)
    inner = add_terms(None if left is None else scale_columns(left * off / E, S),
                      None if right is None else scale_rows(right * off / E, S),
                      None if gS is None else diag_embed(with_type_of(gS, U)))
    if left is not None and U._array.dtype.kind in "cW":
        inner = inner + diag_embed(diagonal(left, 0, -2, -1) / (2 * S))
    result = matmul(matmul(U, inner), Vh)
    if m > k and gU is not None:
        over = scale_columns(gU, 1 / S)
        result = result + matmul(over - matmul(U, matmul(adjoint(U), over)), Vh)
    if n > k and gVh is not None:
        over = scale_rows(gVh, 1 / S)
        result = result + matmul(U, over - matmul(matmul(over, adjoint(Vh)), Vh))
    return [result]


def _check_svd(A: Tensor, *rest: Any) -> Any:
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd", "linalg_svd_cpu")
    if any(isinstance(driver, str) for driver in rest):
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                           "inputs with cuSOLVER backend.")
    return A, *rest


def _svd_kernel(a: np.ndarray, full_matrices: bool, driver: str | None) -> Any:
    lapack.fits(driver is None)
    return orthogonal.svd(a, full_matrices)


linalg_svd = op(
    "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> "
    "(Tensor U, Tensor S, Tensor Vh)", kernel=_svd_kernel, kernel_checks=True, canonical=_check_svd,
    core="(m,n)->(m,k),(k),(k,n)", vjp=_svd_vjp, out_type=OUT_TYPE, out_device=OUT_DEVICE,
    out_reported_as="_linalg_svd", autocast="full", aten=(AtenForm(
        "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, "
        "str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
        lambda A, full_matrices, driver: (A, full_matrices, True, driver)),),
    doc="""A = U diag(S) Vh with orthonormal columns of U and rows of Vh, and S falling.

    >>> import flambeau
    >>> flambeau.linalg.svd(flambeau.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """)


_values = op("_svdvals(Tensor A) -> Tensor", kernel=orthogonal.svdvals, kernel_checks=True,
             canonical=_check_svd, core="(m,n)->(k)", function=False, method=False, out=False,
             doc="The singular values, without derivatives.")


def singular_values(A: Tensor) -> Tensor:
    """Those of matrices, by the cheaper op where no derivative is wanted."""
    return linalg_svd(A, False)[1] if differentiating(A) else _values(A)


@op("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", out_type=OUT_TYPE,
    out_device=OUT_DEVICE, out_reported_as="_linalg_svd", autocast="full")
def svdvals(A: Tensor, driver: str | None) -> Tensor:
    """The singular values, falling."""
    if driver is not None:
        _check_svd(A, driver)
    return singular_values(A)


@op("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
    out_reported_as=lambda self, *_: "_linalg_svd" if self.requires_grad else None,
    out_type=OUT_TYPE, out_device=OUT_DEVICE, autocast="full")
def svd(self: Tensor, some: bool, compute_uv: bool) -> Any:
    """input = U diag(S) Vᴴ: `linalg.svd`, but it gives V, and by default thin factors."""
    if self._array.ndim < 2:
        raise RuntimeError("linalg.svd: input should have at least 2 dimensions, but has "
                           f"{self._array.ndim} dimensions instead")
    if not compute_uv:
        m, n = self._array.shape[-2:]
        lead = self._array.shape[:-2]
        zeros = [wrap(np.zeros((*lead, k, k), self._array.dtype)) for k in (m, n)]
        return zeros[0], singular_values(self), zeros[1]
    U, S, Vh = linalg_svd(self, not some)
    return U, S, adjoint(Vh)
