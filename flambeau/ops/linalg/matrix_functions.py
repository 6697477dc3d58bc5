"""Functions of matrices: powers, exponentials, norms, ranks, condition numbers."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau.core.dtypes import FLOATING, as_numpy_dtype, int64
from flambeau.core.promotion import convert, join
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, wrap
from flambeau.core.type_info import contiguous_format
from flambeau.dispatch.declaration import op
from flambeau.kernels.linalg import orthogonal
from flambeau.kernels.linalg.matrix_exp import matrix_exp
from flambeau.kernels.reduction.statistics import check_norm_type
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import warn_of_resizing
from flambeau.ops.factory.create import ones_like, zeros_like
from flambeau.ops.indexing.index import new_zeros
from flambeau.ops.linalg.decompositions import singular_values
from flambeau.ops.linalg.inverses import inv, inv_ex, numbers
from flambeau.ops.linalg.support import (
    adjoint,
    check_floating,
    check_is_floating,
    check_lapack,
    check_matrix,
    check_square,
    differentiating,
    failures,
    identity,
    matmul,
)
from flambeau.ops.out_types import CASTABLE_RESULT, OUT_TYPE, can_cast
from flambeau.ops.pointwise.arithmetic import abs
from flambeau.ops.pointwise.conditional import nan_to_num, where
from flambeau.ops.reduction.minmax import amax, amin
from flambeau.ops.reduction.scan import cumprod
from flambeau.ops.reduction.statistics import vector_norm
from flambeau.ops.reduction.sums import sum
from flambeau.ops.spatial.padding import constant_pad_nd
from flambeau.ops.view.conversion import cast, clone
from flambeau.ops.view.join import cat
from flambeau.ops.view.rearranging import flip
from flambeau.ops.view.shape import expand, movedim, squeeze, unsqueeze
from flambeau.ops.view.splitting import narrow

# ---- powers and exponentials --------------------------------------------------------------------


def _power(A: Tensor, n: int) -> Tensor:
    check_square(A, "linalg.matrix_power")
    size = A._array.shape[-1]
    if n == 0:                              # derives from A, if only by gradients of zero
        return clone(A, memory_format=contiguous_format).copy_(identity(size, A))
    if n < 0:
        A, n = inv(A), -n
    if n == 3:                              # with the square first, as PyTorch multiplies
        return matmul(matmul(A, A), A)
    result = None
    while n:
        if n & 1:
            result = A if result is None else matmul(result, A)
        n >>= 1
        A = matmul(A, A) if n else A
    return result


def _speaker_of_power(A: Tensor, n: int) -> str | None:
    return ("linalg_inv_ex" if n == -1 else "matmul") if _multiplies_last(n) else None


def _multiplies_last(n: int) -> bool:
    """Is what is computed last a product (or an inverse), and no copy of a square?"""
    return n in (-3, -2, -1, 2, 3) or -n & n not in (n, -n)


@op("linalg_matrix_power(Tensor self, int n) -> Tensor", out_reported_as=_speaker_of_power,
    out_type=lambda read, out, found:
    OUT_TYPE if _multiplies_last(read[1]) and can_cast(found, out) else "",
    out_rows=True,
    out_cast=CASTABLE_RESULT.replace("{name}", "matrix_power"),
    aliases=("matrix_power(Tensor self, int n) -> Tensor",))
def linalg_matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied with itself `n` times, by squaring; its inverse if n < 0.

    >>> import flambeau
    >>> flambeau.linalg.matrix_power(flambeau.tensor([[1, 1], [0, 1]]), 5)
    tensor([[1, 5],
            [0, 1]])
    """
    if n == 0:
        check_square(A, "linalg.matrix_power")
        refuse(A._array, "UW", "eye")
    result = _power(A, n)
    return clone(A, memory_format=contiguous_format) if result is A else result


def _exp_vjp(grad: Tensor, self: Tensor) -> Tensor:
    """Fréchet's derivative at Aᴴ in direction grad, a corner of the exponential of a block matrix
    (Higham, Functions of Matrices, 2008, section 3.2)."""
    return _exp_derivative(adjoint(self), grad)


def _exp_derivative(A: Tensor, direction: Tensor) -> Tensor:
    n = A._array.shape[-1]
    if A._array.shape != direction._array.shape:
        direction = expand(direction, A._array.shape)
    if differentiating(A, direction):       # sums, whose gradients lie as PyTorch's
        blocks = constant_pad_nd(A, (0, n, 0, n)) + constant_pad_nd(A, (n, 0, n, 0))
        blocks = blocks + constant_pad_nd(direction, (n, 0, 0, n))
    else:
        blocks = cat([cat([A, direction], -1), cat([zeros_like(A), A], -1)], -2)
    return narrow(narrow(linalg_matrix_exp(blocks), -2, 0, n), -1, n, n)


def _exp_kernel(self: np.ndarray) -> np.ndarray:
    if self.dtype.itemsize == 2:
        return convert(matrix_exp(convert(self, np.dtype(np.float32))), self.dtype)
    return matrix_exp(self)


def _check_exp(self: Tensor) -> Any:
    check_square(self, "linalg.matrix_exp")
    if self._array.dtype not in FLOATING:
        check_floating(self, "linalg.matrix_exp")
    return (self,)


linalg_matrix_exp = op(
    "linalg_matrix_exp(Tensor self) -> Tensor", kernel=_exp_kernel, canonical=_check_exp,
    core="(n,n)->(n,n)", d_self=_exp_vjp, out=False,
    refuses=(lambda self: "sum_cpu" if self.dtype.itemsize == 1 else "bmm", "W8"),
    jvp=lambda self, self_t: _exp_derivative(self, self_t),
    aliases=("matrix_exp(Tensor self) -> Tensor",), doc="""Σ Aᵏ / k!, by scaling and squaring of
    Padé approximants.

    >>> import flambeau
    >>> flambeau.linalg.matrix_exp(flambeau.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """)


# ---- norms --------------------------------------------------------------------------------------

NORM_TYPE = "{name} expected out tensor dtype {found} but got: {out}"


def _check_dim_pair(dim: Any, name: str, ndim: int) -> tuple[int, int]:
    if isinstance(dim, int) or len(dim) != 2:
        shown = dim if isinstance(dim, int) else " ".join(map(str, dim))
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {shown}")
    a, b = wrap_dim(dim[0], ndim), wrap_dim(dim[1], ndim)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return a, b


@op("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, "
    "*, ScalarType? dtype=None) -> Tensor", out_type=NORM_TYPE, out_reported_as=None)
def matrix_norm(A: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A norm of matrices: "fro", "nuc", ±2 (extreme singular value), ±1 (columns), ±inf (rows).

    >>> import flambeau
    >>> flambeau.linalg.matrix_norm(flambeau.tensor([[3.0, 0.0], [4.0, 0.0]]), 1)
    tensor(7.)
    """
    name = "linalg.matrix_norm"
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    check_matrix(A, name)
    if A._array.dtype.kind in "bui":
        check_floating(A, name)
    rows, columns = _check_dim_pair(dim, name, A._array.ndim)
    wanted = None if dtype is None else as_numpy_dtype(dtype)
    if wanted is not None and wanted != A._array.dtype:
        check_norm_type(A._array.dtype, wanted, name)
        A = cast(A, wanted)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord == "nuc" or ord in (2, -2):
        check_floating(A, name)
        S = singular_values(movedim(A, (rows, columns), (-2, -1)))
        found = sum(S, -1) if ord == "nuc" else _largest_or_zero(S, -1) if ord > 0 else amin(S, -1)
        if keepdim:
            for d in sorted((rows, columns)):
                found = unsqueeze(found, d)
        return found
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    inside, across = (rows, columns) if ord in (1, -1) else (columns, rows)
    if across > inside and not keepdim:
        across -= 1
    return (_largest_or_zero if ord > 0 else amin)(sum(abs(A), inside, keepdim), across, keepdim)


def _largest_or_zero(sizes: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The largest of what is not negative; 0 of nothing."""
    return (amax if sizes._array.shape[dim] else sum)(sizes, dim, keepdim)


@op("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor", out_type=NORM_TYPE, out_reported_as=None)
def linalg_norm(A: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A vector norm (one dimension, or all) or a matrix norm (two dimensions, with `ord`).

    >>> import flambeau
    >>> flambeau.linalg.norm(flambeau.tensor([3.0, 4.0]))
    tensor(5.)
    """
    n = A._array.ndim
    if dim is not None and not isinstance(dim, int):
        if len(dim) not in (1, 2):
            raise RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                               f"{[*dim]}")
        dim = dim[0] if len(dim) == 1 else dim
    if isinstance(ord, str) and dim is not None and isinstance(dim, int):
        return matrix_norm(A, ord, (dim,), keepdim, dtype=dtype)
    if ord is not None and dim is None and n not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D "
                           f"or 2D. Got {n}D.")
    if ord is not None and dim is None and n == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype)
    if ord is not None and dim is not None and not isinstance(dim, int):
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        return matrix_norm(A, ord, (-2, -1), keepdim, dtype=dtype)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@op("linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
    "linalg_cond.p_str(Tensor self, str p) -> Tensor", out_cast=CASTABLE_RESULT,
    out_reported_as=None, autocast="full")
def cond(A: Tensor, p: Any) -> Tensor:
    """The condition number |A| |A⁻¹| in a matrix norm; by default that of the singular values.

    >>> import flambeau
    >>> flambeau.linalg.cond(flambeau.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    check_matrix(A, f"linalg.cond(ord={p})" if isinstance(p, str) else "linalg.cond",
                 "A" if isinstance(p, str) else "")
    if not A._array.size and (not isinstance(p, str) or A._array.shape[-1] == A._array.shape[-2]):
        zeros = new_zeros(A, A._array.shape[:-2])
        return zeros.abs() if zeros.is_complex() else zeros
    if p in (None, 2, -2):
        check_floating(A, "linalg.svd", "linalg_svd_cpu")
        S = singular_values(A)
        big, small = narrow(S, -1, 0, 1), narrow(S, -1, S._array.shape[-1] - 1, 1)
        return squeeze(small / big if p == -2 else big / small, -1)
    m, n = A._array.shape[-2:]
    if m != n:
        raise RuntimeError(f"linalg.cond(ord={p}): A must be batches of square matrices, but they "
                           f"are {m} by {n} matrices")
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    inverted, info = inv_ex(A)
    result = matrix_norm(A, p) * matrix_norm(inverted, p)
    if failures(info) is not None:
        result = where(info != 0, math.inf, result)
    return nan_to_num(result, math.inf, math.inf, -math.inf)


# ---- ranks --------------------------------------------------------------------------------------


def _check_rank(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        check_square(self, "linalg.eigh")
    if atol is None and rtol is None:           # limits are made of the type's precision
        check_lapack(self)
    elif not hermitian:
        check_is_floating(self, "linalg.svd")
    check_floating(self, "torch.linalg.matrix_rank",
                   "linalg_eigh_cpu" if hermitian else "linalg_svd_cpu")
    return self, atol, rtol, hermitian


_rank = op("_matrix_rank(Tensor self, object atol, object rtol, bool hermitian) -> Tensor",
           kernel=orthogonal.matrix_rank, kernel_checks=True, canonical=_check_rank,
           function=False, method=False, out=False,
           batch=lambda size, dims, self, atol, rtol, hermitian: (
               _rank(movedim(self, dims[0], 0), atol, rtol, hermitian), 0))
_OF_RANK: dict[str, Any] = {
    "autocast": "full", "out_cast": "torch.{name}: Expected result to be safely castable from "
    "{found} dtype, but got result with dtype {out}"}


@op("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, "
    "bool hermitian=False) -> Tensor",
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, "
    "bool hermitian=False) -> Tensor", **_OF_RANK)
def matrix_rank(input: Tensor, atol: Any, rtol: Any, hermitian: bool, self: Tensor) -> Tensor:
    """How many singular values are larger than max(atol, rtol σ₁).

    >>> import flambeau
    >>> flambeau.linalg.matrix_rank(flambeau.ones(3, 3))
    tensor(1)
    """
    return _find_rank(self if input is None else input, atol, rtol, hermitian)


def _find_rank(self: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    name = "torch.linalg.matrix_rank"
    check_matrix(self, name, "input")
    rank = _rank(self, numbers(atol, f"{name}: atol"), numbers(rtol, f"{name}: rtol"), hermitian)
    batch = self._array.shape[:-2]
    if rank._array.shape != batch and 0 not in batch:       # as of the result that PyTorch resizes
        warn_of_resizing(batch, rank._array.shape)
    return rank


@op("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    overload_of=matrix_rank, **_OF_RANK)
def _rank_above(self: Tensor, tol: Any, hermitian: bool, input: Tensor) -> Tensor:
    return _find_rank(self if input is None else input, tol, 0.0, hermitian)


# ---- Vandermonde --------------------------------------------------------------------------------


@op("linalg_vander(Tensor x, *, int? N=None) -> Tensor", out=False)
def linalg_vander(x: Tensor, N: int | None) -> Tensor:
    """The powers 0 … N - 1 of each element, along a new last dimension.

    >>> import flambeau
    >>> flambeau.linalg.vander(flambeau.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    refuse(x._array, "beW8", "linalg.vander supports floating point, complex, and integer tensors, "
           "but got {}")
    x = x if x._array.ndim else unsqueeze(x, 0)
    n = x._array.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x._array.dtype.kind in "ui":
        x = cast(x, np.dtype(np.int64))
    spread = unsqueeze(x, -1)
    ones = ones_like(spread)
    wide = expand(spread, (*x._array.shape, n - 1))
    return cat([ones, cumprod(wide, -1)], -1)


@op("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", out=False, method=False)
def vander(x: Tensor, N: int | None, increasing: bool) -> Tensor:
    """The powers of a vector's elements as columns, falling unless `increasing`.

    >>> import flambeau
    >>> flambeau.vander(flambeau.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    join(x.dtype, int64)
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x._array.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if x._array.dtype.kind in "bui":
        x = cast(x, np.dtype(np.int64))
    if n == 0:
        return wrap(np.empty((x._array.shape[0], 0), x._array.dtype))
    spread = unsqueeze(x, 1)
    columns = [ones_like(spread)]
    if n > 1:
        columns.append(cumprod(expand(spread, (x._array.shape[0], n - 1)), 1))
    result = cat(columns, 1)
    return result if increasing else flip(result, (1,))

