"""Householder's reflections: QR as LAPACK keeps it, and products with such a Q."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.linalg import orthogonal
from flambeau.kernels.refused import refuse
from flambeau.ops.factory.create import zeros_like
from flambeau.ops.linalg.support import (
    adjoint,
    by_columns,
    constant,
    differentiating,
    matmul,
    with_gradient_by_columns,
    with_gradient_of_factor,
)
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.complex import conjugated, real_part
from flambeau.ops.pointwise.conditional import where
from flambeau.ops.view.diagonal import tril
from flambeau.ops.view.join import cat
from flambeau.ops.view.shape import batch_leading
from flambeau.ops.view.splitting import narrow

# ---- factors ------------------------------------------------------------------------------------


def _check_geqrf(self: Tensor) -> Any:
    if self._array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    refuse(self._array, "bBilUeW8", "geqrf_cpu")
    return (self,)


def _reflect_by_columns(A: Tensor) -> tuple[Tensor, Tensor]:
    """What `geqrf` computes, as LAPACK defines it: with the column x = (a, t), the reflection
    1 - tau v vᴴ, v = (1, t / (a - b)), tau = (b - a) / b, turns it to (b, 0), b = -sign(Re a) |x|.
    """
    m, n = A._array.shape[-2:]
    k, nothing = min(m, n), zeros_like(A)
    upper, lower, factors = [narrow(nothing, -2, k, m - k)], [narrow(nothing, -1, k, n - k)], []
    for i in range(k):
        first, tail = A[..., :1, :1], A[..., 1:, :1]
        squares = real_part(tail * conjugated(tail)).sum(-2, True)
        still = (squares == 0) & (first == real_part(first))           # the column is turned
        size = where(still, 1, real_part(first * conjugated(first)) + squares)
        b = where(real_part(first) < 0, size.sqrt(), -size.sqrt())
        factors.append(where(still, 0, (b - first) / b).squeeze(-1))
        v = tail / where(still, 1, first - b)
        rest = A[..., 1:]
        turned = conjugated(factors[-1]).unsqueeze(-1) * (
            rest[..., :1, :] + matmul(adjoint(v), rest[..., 1:, :]))
        row = rest[..., :1, :] - turned
        A = rest[..., 1:, :] - matmul(v, turned)
        upper.insert(-1, cat([nothing[..., :1, :i], where(still, first, b), row], -1))
        lower.insert(-1, cat([nothing[..., :i + 1, :1], v], -2))
    return by_columns(cat(upper, -2) + cat(lower, -1)), cat(factors, -1)


_geqrf = op("_geqrf(Tensor self) -> (Tensor a, Tensor tau)", kernel=orthogonal.geqrf,
            kernel_checks=True, canonical=_check_geqrf, core="(m,n)->(m,n),(k)", function=False,
            method=False, out=False)


@op("geqrf(Tensor self) -> (Tensor a, Tensor tau)", autocast="full", out_rows="occupied",
    out_cast="torch.geqrf: Expected a to be safely castable from {found} dtype, but got a with "
    "dtype {out}")
@one_node
def geqrf(self: Tensor) -> Any:
    """QR as LAPACK keeps it: R above, and the vectors of the reflections below the diagonal."""
    if not differentiating(self):
        return _geqrf(self)
    _check_geqrf(self)
    derived = 0 not in self._array.shape[-2:]
    return _reflect_by_columns(self) if derived else _geqrf(self)


# ---- products -----------------------------------------------------------------------------------


def _reflected_vjp(grad: Tensor, A: Tensor, tau: Tensor, X: Tensor, adjoint_of: bool) -> list[Any]:
    """With Y = X - t v (vᴴ X) for each reflection, and G the gradient of Y: that of t is
    -(vᴴ G)(vᴴ X)ᴴ, that of v is -t* G (vᴴ X)ᴴ - t X (vᴴ G)ᴴ, and that of X is (1 - t v vᴴ)ᴴ G."""
    m, k = A._array.shape[-2], tau._array.shape[-1]
    V = tril(narrow(A, -1, 0, k), -1) + constant(np.eye(m, k), A)
    vectors, factors, before = [], [], []
    order = range(k) if adjoint_of else range(k - 1, -1, -1)
    for i in order:
        v, t = narrow(V, -1, i, 1), narrow(tau, -1, i, 1).unsqueeze(-1)
        t = conjugated(t) if adjoint_of else t
        seen = matmul(adjoint(v), X)
        vectors.append(v), factors.append(t), before.append((X, seen))
        X = X - t * matmul(v, seen)
    g_vectors, g_factors = [zeros_like(V[..., :1])] * k, [zeros_like(tau[..., :1])] * k
    for i, v, t, (X, seen) in reversed(list(zip(order, vectors, factors, before))):
        met = matmul(adjoint(v), grad)
        g = -matmul(met, adjoint(seen))
        g_factors[i] = (conjugated(g) if adjoint_of else g).squeeze(-1)
        g_vectors[i] = -conjugated(t) * matmul(grad, adjoint(seen)) - t * matmul(X, adjoint(met))
        grad = grad - conjugated(t) * matmul(v, met)
    if not k:
        return [zeros_like(A), zeros_like(tau), grad]
    gA = tril(cat(g_vectors, -1), -1)
    if A._array.shape[-1] > k:
        rest = zeros_like(narrow(A, -1, k, A._array.shape[-1] - k))
        gA = cat([gA, rest.expand(*gA._array.shape[:-1], rest._array.shape[-1])], -1)
    return [gA, cat(g_factors, -1), grad]


def _check_reflections(name: str, A: Tensor, tau: Tensor) -> None:
    a, t = A._array.shape, tau._array.shape
    if len(a) - len(t) != 1:
        raise RuntimeError(f"{name}: Expected tau to have one dimension less than input, but got "
                           f"tau.ndim equal to {len(t)} and input.ndim is equal to {len(a)}")
    if a[:-2] != t[:-1]:
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to "
                           f"input.shape[:-2], but got {list(t[:-1])}")


def _check_householder_product(input: Tensor, tau: Tensor) -> Any:
    name = "torch.linalg.householder_product"
    if input._array.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input._array.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")
    if n < tau.size(-1):
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")
    _check_reflections(name, input, tau)
    if tau._array.dtype != input._array.dtype:
        raise RuntimeError(f"{name}: tau dtype {type_name(tau.dtype)} does not match input dtype "
                           f"{type_name(input.dtype)}")
    refuse(input._array, "bBilUeW8", "orgqr_cpu")
    return input, tau


def _householder_product_vjp(grad: Tensor, input: Tensor, tau: Tensor) -> Any:
    if not input._array.size or not tau._array.size:
        return [None, None]
    grad = with_gradient_of_factor(grad, True)
    m, n = input._array.shape[-2:]
    eye = wrap(np.eye(m, n, dtype=input._array.dtype))
    return _reflected_vjp(grad, input, tau, eye.expand(*input._array.shape), False)[:2]


householder_product = op(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    kernel=orthogonal.householder_product, kernel_checks=True, canonical=_check_householder_product,
    core="(m,n),(k)->(m,n)", vjp=_householder_product_vjp,
    batch=batch_leading(lambda: householder_product), autocast="full", out_rows="occupied",
    aliases=("orgqr(Tensor self, Tensor input2) -> Tensor",),
    out_cast="torch.linalg.householder_product: Expected result to be safely castable from "
    "{found} dtype, but got result with dtype {out}",
    doc="""The first columns of the product of reflections that `geqrf` gives.

    >>> import flambeau
    >>> A = flambeau.tensor([[3.0, 1.0], [4.0, 2.0]])
    >>> Q = flambeau.linalg.householder_product(*flambeau.geqrf(A))
    >>> flambeau.allclose(Q, flambeau.linalg.qr(A).Q)
    True
    """)


def _check_ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool, transpose: bool) -> Any:
    name, rows = "torch.ormqr", -2 if left else -1
    a, tau, b = (t._array.shape for t in (self, input2, input3))
    for what, shape in (("input", a), ("other", b)):
        if len(shape) < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    if b[rows] != a[-2]:
        raise RuntimeError(f"{name}: other.shape[{rows}] must be equal to input.shape[-2]")
    if b[rows] < input2.size(-1):
        raise RuntimeError(f"{name}: other.shape[{rows}] must be greater than or equal to "
                           "tau.shape[-1]")
    if tau[-1] != min(b[-2 if left else -1], a[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{rows}], "
                           "input.shape[-1])")
    if len(a) - len(tau) == 1 and len(a) != len(b):
        raise RuntimeError(f"{name}: Expected other to have the same number of dimensions as "
                           f"input, but got other.ndim equal to {len(b)} and input.ndim is equal "
                           f"to {len(a)}")
    _check_reflections(name, self, input2)
    if a[:-2] != b[:-2]:
        raise RuntimeError(f"{name}: Expected batch dimensions of other to be equal to "
                           f"input.shape[:-2], but got {list(b[:-2])}")
    for what, other in (("tau", input2), ("other", input3)):
        if other._array.dtype != self._array.dtype:
            raise RuntimeError(f"{name}: Expected input and {what} to have the same dtype, but "
                               f"input has dtype{type_name(self.dtype)} and {what} has dtype "
                               f"{type_name(other.dtype)}")
    refuse(self._array, "bBilUeW8", "ormqr_cpu")
    return self, input2, input3, left, transpose


def _ormqr_vjp(grad: Tensor, needs: Any, self: Tensor, input2: Tensor, input3: Tensor, left: bool,
               transpose: bool) -> Any:
    if not (needs[0] or needs[1]) or not self._array.size:
        return [None, None, ormqr(self, input2, grad, left, not transpose)]
    by_other = ormqr(self, input2, grad, left, not transpose)
    grad, input3 = with_gradient_of_factor(grad, left), with_gradient_by_columns(input3)
    if left:
        own, factors, _ = _reflected_vjp(grad, self, input2, input3, transpose)
    else:
        own, factors, _ = _reflected_vjp(adjoint(grad), self, input2, adjoint(input3),
                                         not transpose)
    *_, down, across = self._array.strides
    return [by_columns(own) if down < across else own, factors, by_other]


ormqr = op(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> "
    "Tensor", kernel=orthogonal.ormqr, kernel_checks=True, canonical=_check_ormqr,
    core="(m,n),(k),(p,q)->(p,q)", vjp=_ormqr_vjp,
    batch=batch_leading(lambda: ormqr), autocast="full", out_rows="occupied",
    out_type="torch.{name}: Expected input and result to have the same dtype, but input has "
    "dtype{found} and result has dtype {out}",
    doc="The product of Q (or Qᴴ), given as reflections, and a matrix, from the left or the right.")
