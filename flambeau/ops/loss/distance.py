"""Distances and similarities between vectors."""
from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

import flambeau
from flambeau._support.scopes import within
from flambeau.core.autograd.graph import next_order
from flambeau.core.modes import grad_enabled, grad_mode, intercepts_ops
from flambeau.core.op import public
from flambeau.core.promotion import join, type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.parts import CompositeBackward
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.linalg import distances as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.node_names import clamped_value, plus, rename
from flambeau.ops.pointwise.arithmetic import div, mul
from flambeau.ops.reduction.statistics import vector_norm
from flambeau.ops.reduction.sums import sum

_TOP: dict[str, Any] = {"method": False, "out": False}


@op("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", **_TOP)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    """x₁ · x₂ / (max(‖x₁‖, eps) · max(‖x₂‖, eps)) along `dim`.

    >>> import flambeau
    >>> flambeau.cosine_similarity(flambeau.tensor([[3.0, 4.0]]), flambeau.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    if x1._array.dtype != x2._array.dtype or x1._array.dtype.kind != "f":
        common = join(x1.dtype, x2.dtype)
        if not common.is_floating_point:
            raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                               f"{type_name(common)}")
        x1, x2 = x1.to(common), x2.to(common)
    if x1._array.shape != x2._array.shape:
        x1, x2 = flambeau.broadcast_tensors(x1, x2)
    if intercepts_ops():                # which see both lengths before the bound of either
        lengths = [vector_norm(x, 2, dim, True).clone() for x in (x1, x2)]
        least = flambeau.scalar_tensor(eps, dtype=x1.dtype, device=x1.device)
        for length in lengths:
            within(grad_mode, False, length.clamp_min_, least)
    else:
        lengths = [clamped_value(vector_norm(x, 2, dim, True), eps) for x in (x1, x2)]
    units = [div(x, length) for x, length in zip((x1, x2), lengths)]
    return sum(mul(*units), dim)


@op("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> "
    "Tensor", **_TOP)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Tensor:
    """‖x₁ - x₂ + eps‖_p along the last dimension."""
    since = next_order()
    result = flambeau.norm(plus(x1 - x2, eps), p, -1 if max(x1.dim(), x2.dim()) else None, keepdim)
    rename(result, "NormBackward1", since, p=p)
    return result


# ---- all pairs -----------------------------------------------------------------------------------


def _lengths(difference: Tensor, p: float) -> Tensor:
    """p-norms along the last dimension, with gradient 0 where they are 0."""
    size = difference.abs()
    if p == 0:
        return (difference != 0).to(difference.dtype).sum(-1) + 0 * difference.sum(-1)
    if p == 1:
        return size.sum(-1)
    if not difference._array.shape[-1]:
        return size.sum(-1)
    if p == inf:
        return size.amax(-1)
    total = (difference * difference if p == 2 else size.pow(p)).sum(-1)
    zero = total == 0
    return flambeau.where(zero, 0, flambeau.where(zero, 1, total).pow(1 / p))


def _cdist_parts(x1: Tensor, x2: Tensor, p: float) -> Tensor:
    return _lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


_through_apart = CompositeBackward(_cdist_parts, ("x1", "x2"), ("p",))


def _cdist_vjp(grad: Tensor, needs: Any, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> Any:
    if grad_enabled():
        return _through_apart(grad, needs, x1, x2, p)
    return (_cdist_backward(grad, x1, x2, p, result) if needs[0] else None,
            _cdist_backward(grad.mT, x2, x1, p, result.mT) if needs[1] else None)


_INSIDE: dict[str, Any] = {"function": False, "method": False, "out": False}
_cdist_forward = op(
    "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
    kernel=kernels.cdist, unused="compute_mode", parts=_cdist_parts, vjp=_cdist_vjp,
    node="CdistBackward0", **_INSIDE)
_cdist_backward = op(
    "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
    kernel=kernels.cdist_backward, differentiable=False, shape=lambda grad, x1, *_: x1._array.shape,
    parts=lambda grad, x1, x2, cdist, p: _through_apart(grad, [True, False], x1, x2, p)[0],
    **_INSIDE)
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
          "donot_use_mm_for_euclid_dist")


@op("cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> Tensor", function=False,
    method=False, out=False, refuses=("cdist", "e8"), autocast="full")
def _cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    if x1._array.size and x2._array.size:
        refuse(x1._array, "e8", "cdist")
    for name, x in (("X1", x1), ("X2", x2)):
        if x._array.dtype.kind not in "fV":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{type_name(x.dtype)}")
    a, b = x1._array.shape, x2._array.shape
    for name, shape in (("X1", a), ("X2", b)):
        if len(shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: "
                               f"{len(shape)}D")
    if a[-1] != b[-1]:
        raise RuntimeError("X1 and X2 must have the same number of columns. X1: "
                           f"{a[-1]} X2: {b[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1._array.dtype != x2._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(x1.dtype)} but found "
                           f"{type_name(x2.dtype)}")
    if a[:-2] != b[:-2]:
        front = broadcast_shapes(a[:-2], b[:-2])
        x1, x2 = x1.expand(*front, *a[-2:]), x2.expand(*front, *b[-2:])
    return _cdist_forward(x1, x2, float(p), compute_mode)


@python_function(of=_cdist)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """The p-norm distance of each row of `x1` (..., m, k) to each row of `x2` (..., n, k).

    >>> import flambeau
    >>> flambeau.cdist(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _cdist(x1, x2, p, _MODES.index(compute_mode) or None)


# ---- pairs of rows -------------------------------------------------------------------------------


def _pdist_parts(self: Tensor, p: float) -> Tensor:
    first, second = np.triu_indices(self._array.shape[0], 1)
    return _lengths(self[flambeau.from_numpy(first)] - self[flambeau.from_numpy(second)], p)


_through_pairs = CompositeBackward(_pdist_parts, ("self",), ("p",))
_pdist_forward = op(
    "_pdist_forward(Tensor self, float p=2) -> Tensor", kernel=kernels.pdist,
    parts=_pdist_parts, node="PdistBackward0", **_INSIDE,
    vjp=lambda grad, needs, self, p, result: _through_pairs(grad, needs, self, p)
    if grad_enabled() else (_pdist_backward(grad, self, p, result),))
_pdist_backward = op(
    "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
    kernel=kernels.pdist_backward, differentiable=False, shape=lambda grad, self, *_:
    self._array.shape, parts=lambda grad, self, pdist, p: _through_pairs(grad, [True], self, p)[0],
    **_INSIDE)


@op("pdist(Tensor self, float p=2) -> Tensor", method=False, out=False)
def pdist(self: Tensor, p: float) -> Tensor:
    """The p-norm distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ...."""
    x = self._array
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if x.dtype.char not in "fd":
        if len(x) > 1:
            refuse(x, "e8", "pdist")
        if x.dtype.kind not in "fV":
            raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist_forward(self, p)


public.setdefault("nn.functional", {}).update(
    pdist=pdist, cosine_similarity=cosine_similarity, pairwise_distance=pairwise_distance)
