"""Distances and similarities between vectors."""
from __future__ import annotations

from math import inf

import numpy as np

import flambeau
from flambeau.core.graph import next_order
from flambeau.core.op import composite, public
from flambeau.core.promotion import join, type_name
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels import distances as kernels
from flambeau.kernels.refused import refuse
from flambeau.ops.fused import fused
from flambeau.ops.node_names import clamped_value, one_node, plus, rename
from flambeau.ops.reduction.statistics import vector_norm
from flambeau.ops.refusals import refusing

BOTH = ("nn.functional", "torch")


@composite(namespace=BOTH)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x₁ · x₂ / (max(‖x₁‖, eps) · max(‖x₂‖, eps)) along `dim`.

    >>> import flambeau
    >>> flambeau.cosine_similarity(flambeau.tensor([[3.0, 4.0]]), flambeau.tensor([[1.0, 0.0]]))
    tensor([0.6000])
    """
    common = join(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                           f"{type_name(common)}")
    if x1.dtype is not common or x2.dtype is not common:
        x1, x2 = x1.to(common), x2.to(common)
    if x1._array.shape != x2._array.shape:
        x1, x2 = flambeau.broadcast_tensors(x1, x2)
    units = []
    for x in (x1, x2):
        length = vector_norm(x, 2, dim, True)
        units.append(x / clamped_value(length, eps))
    return (units[0] * units[1]).sum(dim)


@composite(namespace=BOTH)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6,
                      keepdim: bool = False) -> Tensor:
    """‖x₁ - x₂ + eps‖_p along the last dimension."""
    since = next_order()
    result = flambeau.norm(plus(x1 - x2, eps), p, -1 if max(x1.dim(), x2.dim()) else None, keepdim)
    rename(result, "NormBackward1", since, p=p)
    return result


# ---- all pairs -----------------------------------------------------------------------------------


@fused(lambda x1, x2, p, euclid: kernels.cdist(x1, x2, p), tensors=("x1", "x2"),
       backward=lambda grad, x1, x2, result, p: kernels.cdist_backward(grad, x1, x2, result, p),
       when=lambda x1, x2, p, euclid: x1._array.shape[:-2] == x2._array.shape[:-2],
       namespace=None, node_name="CdistBackward0")
def _cdist(x1: Tensor, x2: Tensor, p: float, euclid: bool) -> Tensor:
    return _lengths(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


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


_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
          "donot_use_mm_for_euclid_dist")


@composite
@refusing("e8", "cdist")
@one_node
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """The p-norm distance of each row of `x1` (..., m, k) to each row of `x2` (..., n, k).

    >>> import flambeau
    >>> flambeau.cdist(flambeau.zeros(1, 2), flambeau.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
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
    return _cdist(x1, x2, float(p), compute_mode != _MODES[2])


@fused(lambda input, p: kernels.pdist(input, p),
       backward=lambda grad, input, result, p: kernels.pdist_backward(grad, input, result, p),
       namespace=None, node_name="PdistBackward0")
def _pdist(input: Tensor, p: float) -> Tensor:
    first, second = np.triu_indices(input._array.shape[0], 1)
    return _lengths(input[flambeau.from_numpy(first)] - input[flambeau.from_numpy(second)], p)


def _distances_of_pairs(self: Tensor, p: float) -> Tensor:
    x = self._array
    if x.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {x.ndim}D")
    if x.dtype.char not in "fd":
        refuse(x, "e8", "pdist")
        if x.dtype.kind not in "fV":
            raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist(self, float(p))


pdist = op(
    "pdist(Tensor self, float p=2) -> Tensor", body=_distances_of_pairs, method=False, out=False,
    doc="The p-norm distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ....")
public["nn.functional"]["pdist"] = pdist
