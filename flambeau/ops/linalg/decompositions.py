"""Factorisations of matrices, over any leading dimensions, with rules to any order.

Factors are unique only up to a choice (signs of columns, phases); gradients exist for functions
that do not depend on the choice. The rules follow

    Giles, An extended collection of matrix derivative results for forward and reverse mode
        automatic differentiation, 2008 (eigenvalues, singular values)
    Murray, Differentiation of the Cholesky decomposition, 2016
    Walter and Lehmann, Algorithmic differentiation of linear algebra functions with application in
        optimum experimental design, 2010 (QR, eigenvectors)
    Townsend, Differentiating the singular value decomposition, 2016
    Boeddeker et al., On the computation of complex-valued gradients with application to
        statistically optimum beamforming, 2017 (complex eigenvectors)

with E_ij = λ_j - λ_i throughout. Each is one formula on tensors, so that it can be differentiated
again.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau import return_types
from flambeau.core.op import primitive
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, basis, wrap
from flambeau.kernels import lapack
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.linalg.support import (
    HIDDEN,
    adjoint,
    by_columns,
    check_floating,
    check_matrix,
    check_precision,
    check_square,
    composed,
    constant,
    differences,
    differentiating,
    failures,
    matmul,
    off_diagonal,
    raise_failure,
    scale_columns,
    scale_rows,
    skew,
    values_of,
)
from flambeau.ops.node_names import one_node
from flambeau.ops.refusals import refusing
from flambeau.ops.view.diagonal import diag_embed, diagonal, tril, triu
from flambeau.ops.view.join import cat
from flambeau.ops.view.splitting import narrow

NOT_POSITIVE = ("The factorization could not be completed because the input is not "
                "positive-definite (the leading minor of order {} is not positive-definite).")


def plus(*terms: Any) -> Any:
    """The sum of the terms that are there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def real_diagonal(X: Tensor) -> Tensor:
    return basis.real(diagonal(X, 0, -2, -1))


# ---- Cholesky -----------------------------------------------------------------------------------


def _cholesky_back(grad: Any, result0: Tensor, upper: bool) -> Any:
    """L⁻ᴴ S L⁻¹, with S = Lᴴ gL below the diagonal, half of it on it, and Hermitian above."""
    from flambeau.ops.linalg.solvers import triangular
    g, L = grad[0], result0
    if g is None:
        return [None]
    if upper:
        g, L = adjoint(g), adjoint(L)
    X = matmul(adjoint(L), g)
    S = (tril(X) + adjoint(tril(X, -1))) * 0.5
    left = triangular(adjoint(L), S, True)
    return [adjoint(triangular(adjoint(L), adjoint(left), True))]


@primitive(lapack.cholesky, core="(n,n)->(n,n),()", returns=tuple, vjp=_cholesky_back,
           name="linalg_cholesky_ex", differentiable=(True, False), **HIDDEN)
def _cholesky(input: Tensor, upper: bool) -> Any:
    return input, upper


@composed(namespace="linalg")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """`cholesky` and, for each matrix, 0 or the order of the leading minor that is not positive."""
    check_square(A, "linalg.cholesky_ex")
    _check_cholesky(A, "linalg.cholesky")
    L, info = _cholesky(A, upper)
    if check_errors:
        raise_failure(info, "linalg.cholesky_ex", NOT_POSITIVE)
    return return_types.linalg_cholesky_ex(L, info)


def _check_cholesky(A: Tensor, name: str) -> None:
    if name == "cholesky":
        refuse(A._array, "bBilUeW8", "cholesky_cpu")
    refuse(A._array, "8", "tril")
    check_floating(A, name, "cholesky_cpu")


def _cholesky_checked(A: Tensor, upper: bool, name: str) -> Tensor:
    check_square(A, name)
    _check_cholesky(A, name)
    L, info = _cholesky(A, upper)
    raise_failure(info, name, NOT_POSITIVE)
    return L


@composed(namespace="linalg", name="cholesky")
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L Lᴴ (or upper U with A = Uᴴ U) of a positive-definite A.

    >>> import flambeau
    >>> flambeau.linalg.cholesky(flambeau.tensor([[4.0, 2.0], [2.0, 2.0]]))
    tensor([[2., 0.],
            [1., 1.]])
    """
    return _cholesky_checked(A, upper, "linalg.cholesky")


@composed(method=True)
@one_node
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """`linalg.cholesky`, by its older name."""
    return _cholesky_checked(input, upper, "cholesky")


# ---- QR -----------------------------------------------------------------------------------------


def _qr_square_back(gQ: Any, gR: Any, Q: Tensor, R: Tensor) -> Any:
    """The gradient of A (m, n) with m >= n, A = Q R."""
    from flambeau.ops.linalg.solvers import triangular
    M = plus(None if gR is None else matmul(gR, adjoint(R)),
             None if gQ is None else -matmul(adjoint(Q), gQ))
    T = triu(M)
    X = matmul(Q, T + adjoint(T) - diag_embed(_as_type(real_diagonal(T), T)))
    X = plus(X, gQ)
    # X R⁻ᴴ = (R⁻¹ Xᴴ)ᴴ
    return adjoint(triangular(R, adjoint(X), True))


def _as_type(X: Tensor, like: Tensor) -> Tensor:
    d = like._array.dtype
    return X if X._array.dtype == d else basis.cast(X, d)


def _qr_back(grad: Any, result0: Tensor, result1: Tensor, mode: str) -> Any:
    gQ, gR = grad
    Q, R = result0, result1
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
        return [_qr_square_back(gQ, gR, Q, R)]
    # A = [X Y] with X square: X = Q U and V = Qᴴ Y
    U, V = narrow(R, -1, 0, m), narrow(R, -1, m, n - m)
    if gR is None:
        gU, gY = None, basis.zeros_like(V)
    else:
        gU, gV = narrow(gR, -1, 0, m), narrow(gR, -1, m, n - m)
        gY = matmul(Q, gV)
        gQ = plus(gQ, matmul(matmul(Q, V), adjoint(gV)))
    return [cat([_qr_square_back(gQ, gU, Q, U), gY], -1)]


def _qr_batched(size: int, dims: Any, input: Tensor, mode: str) -> Any:
    found = _qr(basis.movedim(input, dims[0], 0), mode)
    return found, [None if mode == "r" else 0, 0]


@primitive(lapack.qr, returns=tuple, vjp=_qr_back, batch=_qr_batched, name="linalg_qr", **HIDDEN)
def _qr(input: Tensor, mode: str) -> Any:
    return input, mode


_qr.op.saved_as = {"Q": lambda result0: result0, "R": lambda result1: result1}

@composed(namespace="linalg", name="qr")
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R, A = Q R.

    `mode` "reduced" gives Q (m, k) and R (k, n) with k = min(m, n), "complete" Q (m, m) and R
    (m, n), "r" only R.

    >>> import flambeau
    >>> Q, R = flambeau.linalg.qr(flambeau.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> flambeau.allclose(Q @ R, flambeau.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
                           "(default), 'r', or 'complete'")
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr", "geqrf_cpu")
    return return_types.linalg_qr(*_qr(A, mode))


@composed(method=True)
def qr(input: Tensor, some: bool = True) -> Any:
    """`linalg.qr` with mode "reduced" or, if not `some`, "complete"."""
    check_matrix(input, "linalg.qr")
    check_floating(input, "linalg.qr", "geqrf_cpu")
    return return_types.qr(*_qr(input, "reduced" if some else "complete"))


# ---- singular values ----------------------------------------------------------------------------


def check_phase(diag: Tensor, name: str, what: str) -> None:
    """Refuse a gradient that depends on the phases of complex vectors."""
    off = np.abs(values_of(diag).imag)
    if off.size and off.max() > 1e-2:
        raise RuntimeError(f"{name}: The {what} in the complex case are specified up to "
                           "multiplication by e^{i phi}. The specified loss function depends on "
                           "this quantity, so it is ill-defined.")


def _svd_back(grad: Any, result0: Tensor, result1: Tensor, result2: Tensor) -> Any:
    gU, gS, gVh = grad
    U, S, Vh = result0, result1, result2
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
        check_phase(diagonal(plus(left, right), 0, -2, -1), "svd_backward", "singular vectors")
    E = (S.unsqueeze(-2) - S.unsqueeze(-1)) * (S.unsqueeze(-2) + S.unsqueeze(-1)) \
        + constant(np.eye(k), S)
    off = off_diagonal(k, S)
    inner = plus(None if left is None else scale_columns(left * off / E, S),
                 None if right is None else scale_rows(right * off / E, S),
                 None if gS is None else diag_embed(_as_type(gS, U)))
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


@primitive(lapack.svd, core="(m,n)->(m,k),(k),(k,n)", returns=tuple, vjp=_svd_back,
           name="linalg_svd", **HIDDEN)
def _svd(input: Tensor, full: bool) -> Any:
    return input, full


@primitive(lapack.svdvals, core="(m,n)->(k)", name="linalg_svdvals_kernel", **HIDDEN)
def _svdvals(input: Tensor) -> Any:
    return (input,)


def singular_values(A: Tensor) -> Tensor:
    return _svd(A, False)[1] if differentiating(A) else _svdvals(A)


@composed(namespace="linalg", name="svd")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """A = U diag(S) Vh with orthonormal columns of U and rows of Vh, and S falling.

    >>> import flambeau
    >>> flambeau.linalg.svd(flambeau.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd", "linalg_svd_cpu")
    _no_driver(driver)
    return return_types.linalg_svd(*_svd(A, full_matrices))


def _no_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                           "inputs with cuSOLVER backend.")


@composed(namespace="linalg")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, falling."""
    check_matrix(A, "linalg.svdvals")
    check_floating(A, "linalg.svd", "linalg_svd_cpu")
    _no_driver(driver)
    return singular_values(A)


@composed(method=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """input = U diag(S) Vᴴ: `linalg.svd`, but it gives V, and by default thin factors."""
    check_matrix(input, "linalg.svd")
    check_floating(input, "linalg.svd", "linalg_svd_cpu")
    if not compute_uv:
        m, n = input._array.shape[-2:]
        lead = input._array.shape[:-2]
        zeros = [wrap(np.zeros((*lead, k, k), input._array.dtype)) for k in (m, n)]
        return return_types.svd(zeros[0], singular_values(input), zeros[1])
    U, S, Vh = _svd(input, not some)
    return return_types.svd(U, S, adjoint(Vh))


# ---- eigenvalues --------------------------------------------------------------------------------


def _eigh_back(grad: Any, result0: Tensor, result1: Tensor) -> Any:
    gL, gV = grad
    L, V = result0, result1
    if gV is None:
        return [None if gL is None else matmul(scale_columns(V, gL), adjoint(V))]
    M = matmul(adjoint(V), gV)
    if V._array.dtype.kind in "cW":
        check_phase(diagonal(M, 0, -2, -1), "linalg_eigh_backward", "eigenvectors")
    inner = M * off_diagonal(L._array.shape[-1], L) / differences(L)
    if gL is not None:
        inner = inner + diag_embed(_as_type(gL, V))
    result = matmul(matmul(V, inner), adjoint(V))
    return [(result + adjoint(result)) * 0.5]


@primitive(lapack.eigh, core="(n,n)->(n),(n,n)", returns=tuple, vjp=_eigh_back,
           name="linalg_eigh", **HIDDEN)
def _eigh(input: Tensor, uplo: str) -> Any:
    return input, uplo


@primitive(lapack.eigvalsh, core="(n,n)->(n)", name="linalg_eigvalsh_kernel", **HIDDEN)
def _eigvalsh(input: Tensor, uplo: str) -> Any:
    return input, uplo


def _triangle(UPLO: str) -> str:
    if str(UPLO).upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@composed(namespace="linalg")
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """The eigenvalues, rising, and eigenvectors (columns) of a symmetric or Hermitian matrix, of
    which one triangle is read.

    >>> import flambeau
    >>> flambeau.linalg.eigh(flambeau.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    check_square(A, "linalg.eigh")
    refuse(A._array, "bBilUeW8", "linalg_eigh_cpu")
    return return_types.linalg_eigh(*_eigh(A, _triangle(UPLO)))


@composed(namespace="linalg")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues, rising, of a symmetric or Hermitian matrix."""
    check_square(A, "linalg.eigvalsh")
    refuse(A._array, "bBilUeW8", "linalg_eigh_cpu")
    uplo = _triangle(UPLO)
    return _eigh(A, uplo)[0] if differentiating(A) else _eigvalsh(A, uplo)


def _eig_back(grad: Any, result0: Tensor, result1: Tensor) -> Any:
    from flambeau.ops.linalg.solvers import solved
    gL, gV = grad
    L, V = result0, result1
    if gL is None and gV is None:
        return [None]
    inner = None
    if gV is not None:
        M = matmul(adjoint(V), gV)
        check_phase(diagonal(M, 0, -2, -1), "linalg_eig_backward", "eigenvectors")
        # vectors of length 1 do not move along themselves
        M = M - scale_columns(matmul(adjoint(V), V), _as_type(real_diagonal(M), V))
        inner = M * off_diagonal(L._array.shape[-1], L) / basis.conj(differences(L))
    if gL is not None:
        inner = plus(inner, diag_embed(gL))
    return [solved(adjoint(V), matmul(inner, adjoint(V)))]


@primitive(lapack.eig, core="(n,n)->(n),(n,n)", returns=tuple, vjp=_eig_back, name="linalg_eig",
           **HIDDEN)
def _eig(input: Tensor) -> Any:
    return (input,)


@primitive(lapack.eigvals, core="(n,n)->(n)", name="linalg_eigvals_kernel", **HIDDEN)
def _eigvals(input: Tensor) -> Any:
    return (input,)


@composed(namespace="linalg")
def eig(A: Tensor) -> Any:
    """The eigenvalues, in no order, and eigenvectors (columns of length 1) of a square matrix; both
    complex.

    >>> import flambeau
    >>> flambeau.linalg.eig(flambeau.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    check_square(A, "linalg.eig")
    _check_eigen(A)
    return return_types.linalg_eig(*_eig(A))


def _check_eigen(A: Tensor) -> None:
    if A._array.dtype.char in characters("bBilU8"):
        raise RuntimeError(f"Unknown Complex ScalarType for {type_name(A.dtype)}")
    check_precision(A, "", "linalg_eig_out_cpu")


@composed(namespace="linalg")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of a square matrix, complex, in no order."""
    check_square(A, "linalg.eigvals")
    _check_eigen(A)
    return _eig(A)[0] if differentiating(A) else _eigvals(A)


# ---- LU -----------------------------------------------------------------------------------------


@primitive(lapack.permutation_matrix, core="(k)->(m,m)", name="lu_permutation", **HIDDEN)
def permutation_matrix(pivots: Tensor, m: int, dtype: Any) -> Any:
    return pivots, m, dtype


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L and U out of one matrix."""
    m, n = LU._array.shape[-2:]
    k = min(m, n)
    L = tril(narrow(LU, -1, 0, k), -1) + constant(np.eye(m, k), LU)
    return L, triu(narrow(LU, -2, 0, k))


def _lu_back(grad: Any, result0: Tensor, result1: Tensor) -> Any:
    """With gL and gU the parts of the gradient below and above the diagonal, of square A = P L U:
    P L⁻ᴴ (tril(Lᴴ gL, -1) + triu(gU Uᴴ)) U⁻ᴴ. Further columns of U are L⁻¹ Pᵀ of A's; further rows
    of L are A's U⁻¹."""
    from flambeau.ops.linalg.solvers import triangular
    g, LU = grad[0], result0
    if g is None:
        return [None]
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
    return [matmul(permutation_matrix(result1, m, g._array.dtype), result)]


@primitive(lapack.lu_factor, core="(m,n)->(m,n),(k),()", returns=tuple, vjp=_lu_back,
           name="linalg_lu_factor_ex", **HIDDEN)
def _lu_factor(input: Tensor) -> Any:
    return (input,)


def _factored(A: Tensor, pivot: bool) -> Any:
    if A._array.ndim < 2:
        raise RuntimeError("torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: "
                           f"{list(A._array.shape)} instead")
    refuse(A._array, "bBilUeW8", "lu_cpu")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return _lu_factor(A)


@composed(namespace="linalg")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`lu_factor` and, for each matrix, 0 or the number of the first zero on U's diagonal."""
    LU, pivots, info = _factored(A, pivot)
    if check_errors:
        _raise_zero_pivot(info, "torch.linalg.lu_factor_ex")
    return return_types.linalg_lu_factor_ex(LU, pivots, info)


def _raise_zero_pivot(info: Tensor, name: str) -> None:
    found = failures(info)
    if found is not None:
        at = int(found.reshape(-1)[np.flatnonzero(found)[0]])
        batch = f"(Batch element {np.flatnonzero(found)[0]}): " if found.ndim else ""
        raise RuntimeError(
            f"{name}: {batch}U[{at},{at}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling "
            "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")


@composed(namespace="linalg")
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L (below the diagonal) and U in one matrix, and the rows exchanged, counted from 1."""
    LU, pivots, info = _factored(A, pivot)
    _raise_zero_pivot(info, "torch.linalg.lu_factor")
    return return_types.linalg_lu_factor(LU, pivots)


@composed(namespace="linalg", name="lu")
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper triangle.

    >>> import flambeau
    >>> flambeau.linalg.lu(flambeau.tensor([[0.0, 1.0], [2.0, 3.0]])).U
    tensor([[2., 3.],
            [0., 1.]])
    """
    LU, pivots, _ = _factored(A, pivot)
    found = None if differentiating(A) else lapack.small_lu_unpack(LU._array, pivots._array)
    if found is not None:
        return return_types.linalg_lu(*map(wrap, found))
    L, U = unpacked(LU)
    P = permutation_matrix(pivots, A._array.shape[-2], A._array.dtype)
    return return_types.linalg_lu(P, L, U)


@composed
@one_node(inputs="LU_data")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True,
              unpack_pivots: bool = True) -> Any:
    """P, L and U out of what `lu_factor` gives."""
    if unpack_pivots and LU_pivots._array.dtype != np.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                           "torch.int32 dtype.\nNote: this function is intended to be used with "
                           "the output produced by torch.linalg.lu_factor")
    if unpack_data and unpack_pivots and not differentiating(LU_data):
        found = lapack.small_lu_unpack(LU_data._array, LU_pivots._array)
        if found is not None:
            return return_types.lu_unpack(*map(wrap, found))
    nothing = wrap(np.empty(0, LU_data._array.dtype))
    P = permutation_matrix(LU_pivots, LU_data._array.shape[-2], LU_data._array.dtype) \
        if unpack_pivots else nothing
    L, U = unpacked(LU_data) if unpack_data else (nothing, nothing)
    return return_types.lu_unpack(P, L, U)


@composed
@one_node(name="LinalgLuBackward0")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`linalg.lu_factor` as a tuple, with `info` if asked for."""
    LU, pivots, info = _factored(A, pivot)
    if get_infos:
        return LU, pivots, info
    _raise_zero_pivot(info, "torch.linalg.lu_factor")
    return LU, pivots


Tensor.lu = lambda self, pivot=True, get_infos=False: lu(self, pivot, get_infos)

# ---- Householder reflections --------------------------------------------------------------------


@primitive(lapack.geqrf, core="(m,n)->(m,n),(k)", returns=tuple, name="geqrf_kernel", **HIDDEN)
def _geqrf(input: Tensor) -> Any:
    return (input,)


def _reflect_by_columns(A: Tensor) -> tuple[Tensor, Tensor]:
    """What `_geqrf` computes, as LAPACK defines it: with the column x = (a, t), the reflection
    1 - tau v vᴴ, v = (1, t / (a - b)), tau = (b - a) / b, turns it to (b, 0), b = -sign(Re a) |x|.
    """
    m, n = A._array.shape[-2:]
    k, nothing = min(m, n), basis.zeros_like(A)
    upper, lower, factors = [narrow(nothing, -2, k, m - k)], [narrow(nothing, -1, k, n - k)], []
    for i in range(k):
        first, tail = A[..., :1, :1], A[..., 1:, :1]
        squares = basis.real(tail * basis.conj(tail)).sum(-2, True)
        still = (squares == 0) & (first == basis.real(first))           # the column is turned
        size = basis.where(still, 1, basis.real(first * basis.conj(first)) + squares)
        b = basis.where(basis.real(first) < 0, size.sqrt(), -size.sqrt())
        factors.append(basis.where(still, 0, (b - first) / b).squeeze(-1))
        v = tail / basis.where(still, 1, first - b)
        rest = A[..., 1:]
        turned = basis.conj(factors[-1]).unsqueeze(-1) * (
            rest[..., :1, :] + matmul(adjoint(v), rest[..., 1:, :]))
        row = rest[..., :1, :] - turned
        A = rest[..., 1:, :] - matmul(v, turned)
        upper.insert(-1, cat([nothing[..., :1, :i], basis.where(still, first, b), row], -1))
        lower.insert(-1, cat([nothing[..., :i + 1, :1], v], -2))
    return by_columns(cat(upper, -2) + cat(lower, -1)), cat(factors, -1)


@composed(method=True)
@refusing("bBilUeW8")
@one_node
def geqrf(input: Tensor) -> Any:
    """QR as LAPACK keeps it: R above, and the vectors of the reflections below the diagonal."""
    if input._array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    derived = 0 not in input._array.shape[-2:] and differentiating(input)
    found = _reflect_by_columns(input) if derived else _geqrf(input)
    return return_types.geqrf(*found)


def _reflected_back(grad: Tensor, needs: Any, A: Tensor, tau: Tensor, X: Tensor,
                    adjoint_of: bool) -> list[Any]:
    """With Y = X - t v (vᴴ X) for each reflection, and G the gradient of Y: that of t is
    -(vᴴ G)(vᴴ X)ᴴ, that of v is -t* G (vᴴ X)ᴴ - t X (vᴴ G)ᴴ, and that of X is (1 - t v vᴴ)ᴴ G."""
    m, k = A._array.shape[-2], tau._array.shape[-1]
    V = tril(narrow(A, -1, 0, k), -1) + constant(np.eye(m, k), A)
    vectors, factors, before = [], [], []
    order = range(k) if adjoint_of else range(k - 1, -1, -1)
    for i in order:
        v, t = narrow(V, -1, i, 1), narrow(tau, -1, i, 1).unsqueeze(-1)
        t = basis.conj(t) if adjoint_of else t
        seen = matmul(adjoint(v), X)
        vectors.append(v), factors.append(t), before.append((X, seen))
        X = X - t * matmul(v, seen)
    g_vectors, g_factors = [basis.zeros_like(V[..., :1])] * k, [basis.zeros_like(tau[..., :1])] * k
    for i, v, t, (X, seen) in reversed(list(zip(order, vectors, factors, before))):
        met = matmul(adjoint(v), grad)
        g = -matmul(met, adjoint(seen))
        g_factors[i] = (basis.conj(g) if adjoint_of else g).squeeze(-1)
        g_vectors[i] = -basis.conj(t) * matmul(grad, adjoint(seen)) - t * matmul(X, adjoint(met))
        grad = grad - basis.conj(t) * matmul(v, met)
    if not k:
        return [basis.zeros_like(A), basis.zeros_like(tau), grad]
    gA = tril(cat(g_vectors, -1), -1)
    if A._array.shape[-1] > k:
        rest = basis.zeros_like(narrow(A, -1, k, A._array.shape[-1] - k))
        gA = cat([gA, rest.expand(*gA._array.shape[:-1], rest._array.shape[-1])], -1)
    return [gA, cat(g_factors, -1), grad]


@primitive(lapack.reflected, tensors=("A", "tau", "X"), core="(m,n),(k),(m,p)->(m,p)",
           vjp=_reflected_back, name="linalg_reflected", node_name="OrmqrBackward0", **HIDDEN)
def reflected(A: Tensor, tau: Tensor, X: Tensor, adjoint_of: bool) -> Any:
    """Q X, or Qᴴ X, with Q = H₁ … H_k and H_i = 1 - tau_i v_i v_iᴴ, where v_i is below the diagonal
    of column i of A, with a 1 on it."""
    return A, tau, X, adjoint_of


def _check_reflections(name: str, A: Tensor, tau: Tensor, kernel: str) -> None:
    a, t = A._array.shape, tau._array.shape
    if len(a) - len(t) != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got "
                           f"tau.ndim equal to {len(t)} and input.ndim is equal to {len(a)}")
    if a[:-2] != t[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to "
                           f"input.shape[:-2], but got {list(t[:-1])}")
    if A._array.dtype.kind not in "fc" or A._array.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(A.dtype)}'")


@composed(namespace="linalg")
@one_node(name="LinalgHouseholderProductBackward0")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections that `geqrf` gives.

    >>> import flambeau
    >>> A = flambeau.tensor([[3.0, 1.0], [4.0, 2.0]])
    >>> Q = flambeau.linalg.householder_product(*flambeau.geqrf(A))
    >>> flambeau.allclose(Q, flambeau.linalg.qr(A).Q)
    True
    """
    name = "torch.linalg.householder_product"
    if A._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = A._array.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")
    if n < tau._array.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")
    if tau._array.dtype != A._array.dtype:
        raise RuntimeError(f"{name}: tau dtype {type_name(tau.dtype)} does not match input dtype "
                           f"{type_name(A.dtype)}")
    _check_reflections(name, A, tau, "orgqr_cpu")
    eye = wrap(np.eye(m, n, dtype=A._array.dtype))
    return reflected(A, tau, eye.expand(*A._array.shape), False)


@composed(method=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """`linalg.householder_product`, by its older name."""
    return householder_product(input, input2)


@composed(method=True)
@one_node
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True,
          transpose: bool = False) -> Tensor:
    """The product of Q (or Qᴴ), given as reflections, and a matrix, from the left or the right."""
    name, rows = "torch.ormqr", -2 if left else -1
    a, tau, b = (t._array.shape for t in (input, input2, input3))
    for what, shape in (("input", a), ("other", b)):
        if len(shape) < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    if b[rows] < tau[-1]:
        raise RuntimeError(f"{name}: other.shape[{rows}] must be greater than or equal to "
                           "tau.shape[-1]")
    if b[rows] != a[-2]:
        raise RuntimeError(f"{name}: other.shape[{rows}] must be equal to input.shape[-2]")
    if tau[-1] != min(b[-2 if left else -1], a[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{rows}], "
                           "input.shape[-1])")
    if len(a) - len(tau) == 1 and len(a) != len(b):
        raise RuntimeError(f"{name}: Expected other to have the same number of dimensions as "
                           f"input, but got other.ndim equal to {len(b)} and input.ndim is equal "
                           f"to {len(a)}")
    for what, other in (("tau", input2), ("other", input3)):
        if other._array.dtype != input._array.dtype:
            raise RuntimeError(f"{name}: Expected input and {what} to have the same dtype, but "
                               f"input has dtype{type_name(input.dtype)} and {what} has dtype "
                               f"{type_name(other.dtype)}")
    _check_reflections(name, input, input2, "ormqr_cpu")
    if a[:-2] != b[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of other to be equal to "
                           f"input.shape[:-2], but got {list(b[:-2])}")
    if left:
        return reflected(input, input2, input3, transpose)
    return adjoint(reflected(input, input2, adjoint(input3), not transpose))


