"""What the families of linear algebra share: torch's messages, `out=`, small algebra."""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, interceptors, shows_ops
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, plain_types, wrap
from flambeau.kernels.linalg import lapack
from flambeau.kernels.refused import characters, refuse
from flambeau.ops.coercion import values_below
from flambeau.ops.linalg.matmul import adjoint, conj, matmul
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.pointwise.complex import real_part
from flambeau.ops.view.conversion import cast, contiguous
from flambeau.ops.view.diagonal import diagonal
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import transpose, unsqueeze

# ---- checks -------------------------------------------------------------------------------------


def check_matrix(A: Tensor, name: str, argument: str = "A") -> None:
    if A._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument}".rstrip()
                           + " must have at least 2 dimensions.")


def check_square(A: Tensor, name: str, argument: str = "A") -> None:
    check_matrix(A, name, argument)
    m, n = A._array.shape[-2:]
    if m != n:
        raise RuntimeError(f"{name}: {argument} must be batches of square matrices, but they are "
                           f"{m} by {n} matrices")


def check_is_floating(A: Tensor, name: str) -> None:
    if A._array.dtype not in FLOATING:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got "
                           f"{type_name(A.dtype)}")


def check_floating(A: Tensor, name: str, kernel: str = "") -> None:
    """Raise unless LAPACK knows the type; of low precision says so the function, or its `kernel`,
    which is not called for nothing."""
    check_is_floating(A, name)
    check_precision(A, name, kernel)


def check_precision(A: Tensor, name: str, kernel: str = "") -> None:
    if A._array.dtype.char not in characters("eW8"):
        return
    if kernel:
        return refuse_elements(A, "eW8", kernel)
    raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(A.dtype)}")


def refuse_elements(A: Tensor, kinds: str, kernel: str) -> None:
    """Raise of these kinds of types, if there is an element for the `kernel` to look at."""
    if A._array.size:
        refuse(A._array, kinds, kernel)


def check_lapack(A: Tensor) -> None:
    if A._array.dtype.char in characters("bBilUeW8"):
        raise RuntimeError("This function doesn't handle types other than float and double")


def check_same_type(A: Tensor, B: Tensor, name: str, a: str = "A", b: str = "B") -> None:
    if A._array.dtype != B._array.dtype:
        p, q = type_name(A.dtype), type_name(B.dtype)
        raise RuntimeError(f"{name}: Expected {a} and {b} to have the same dtype, but found {a} of "
                           f"type {p} and {b} of type {q} instead")


def check_fit(A: Tensor, B: Tensor, left: bool, name: str) -> None:
    """Do A X = B, or X A = B, agree in their extents?"""
    a, b = A._array.shape[-2:], B._array.shape[-2:]
    if a[0] != b[0 if left else 1]:
        raise RuntimeError(f"{name}: Incompatible shapes of A and B for the equation "
                           f"{'AX = B' if left else 'XA = B'} ({a[0]}x{a[1]} and {b[0]}x{b[1]})")


def check_solve(b: Tensor, A: Tensor, name: str) -> None:
    """What the older solvers ask of A x = b."""
    if b._array.dtype != A._array.dtype:
        raise RuntimeError("Expected b and A to have the same dtype, but found b of type "
                           f"{type_name(b.dtype)} and A of type {type_name(A.dtype)} instead.")
    m, n = A._array.shape[-2:]
    if m != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {m} by {n} "
                           "matrices")
    rows, columns = b._array.shape[-2:]
    if n != rows:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but "
                           f"each b matrix is {rows} by {columns}")


def failures(info: Tensor) -> np.ndarray | None:
    """The values of `info`; None if all is well (or nothing is known, on meta)."""
    found = info._array if type(info) is Tensor else values_below(info)
    return found if np.count_nonzero(found) else None


def raise_failure(info: Tensor, name: str, message: str, error: Any = None) -> None:
    """Raise LinAlgError, or another error, for the first nonzero `info`; `{}` in the message is its
    value."""
    if shows_ops():                         # modes see who asks
        flambeau.ops.aten._linalg_check_errors.default(info, name, is_matrix=not info._array.ndim)
    found = failures(info)
    if found is not None:
        lapack.raise_failure(found, name, message, error)


def differentiating(*tensors: Tensor) -> bool:
    """Might derivatives of what follows be wanted, or does a transform look on?"""
    return bool(interceptors) or any(
        type(t) not in plain_types or (t.requires_grad and grad_enabled()) for t in tensors)


def by_columns(X: Tensor) -> Tensor:
    """The same matrices in LAPACK's layout, each column by column."""
    return transpose(contiguous(transpose(X, -2, -1)), -2, -1)


def with_gradient_by_rows(X: Tensor) -> Tensor:
    """The same numbers, whose gradient lies row by row, however that of what they go into does."""
    return reshape(reshape(X, (X._array.size,)), X._array.shape)


def with_gradient_by_columns(X: Tensor) -> Tensor:
    """The same matrices, whose gradients lie column by column."""
    return transpose(with_gradient_by_rows(transpose(X, -2, -1)), -2, -1)


def lies_by_columns(X: Tensor) -> bool:
    """Is this a single matrix whose columns lie in one piece?"""
    return X._array.ndim == 2 and X._array.flags.f_contiguous and not X._array.flags.c_contiguous


def with_gradient_of_factor(X: Tensor, adjoint: bool) -> Tensor:
    """The same matrices, whose gradients lie as those of the right factor of a product: as the
    factor itself if that is one matrix; of several by rows, by columns if it is the adjoint."""
    turned = adjoint if X._array.ndim > 2 else lies_by_columns(X)
    return with_gradient_by_columns(X) if turned else with_gradient_by_rows(X)


# ---- small algebra ------------------------------------------------------------------------------


def add_terms(*terms: Any) -> Any:
    """The sum of the terms that are there."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def real_diagonal(X: Tensor) -> Tensor:
    return real_part(diagonal(X, 0, -2, -1))


def with_type_of(X: Tensor, like: Tensor) -> Tensor:
    d = like._array.dtype
    return X if X._array.dtype == d else cast(X, d)


def constant(values: np.ndarray, like: Tensor) -> Tensor:
    """Real numbers as a tensor of the real type that goes with `like`."""
    return wrap(values.astype(np.zeros(0, like._array.dtype).real.dtype))


def identity(n: int, like: Tensor) -> Tensor:
    return wrap(np.eye(n, dtype=like._array.dtype))


def skew(X: Tensor) -> Tensor:
    """X - Xᴴ"""
    return X - adjoint(X)


def scale_columns(X: Tensor, s: Tensor) -> Tensor:
    """X diag(s)"""
    return mul(X, unsqueeze(s, -2))


def scale_rows(X: Tensor, s: Tensor) -> Tensor:
    """diag(s) X"""
    return mul(X, unsqueeze(s, -1))


def differences(s: Tensor) -> Tensor:
    """E with E_ij = s_j - s_i, and ones on the diagonal."""
    return unsqueeze(s, -2) - unsqueeze(s, -1) + constant(np.eye(s._array.shape[-1]), s)


def off_diagonal(n: int, like: Tensor) -> Tensor:
    return constant(1 - np.eye(n), like)


__all__ = ["adjoint", "conj", "matmul", "transpose"]
