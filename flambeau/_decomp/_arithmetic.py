"""Arithmetic of several steps, and gradients of parts of tensors, in fewer kinds of ops."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._decomp._register import stands_for, wide

_aten = flambeau.ops.aten
_where = flambeau.where

# ---- arithmetic ---------------------------------------------------------------------------------

@stands_for(_aten.addcmul.default)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return self + value * (tensor1 * tensor2)


@stands_for(_aten.addcdiv.default)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return self + value * (tensor1 / tensor2)


@stands_for(_aten.lerp.Tensor, _aten.lerp.Scalar)
def lerp(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    return self + weight * (end - self)


def _scaled_sum(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if alpha != 1:
        product = alpha * product
    return product if beta == 0 else product + (self if beta == 1 else beta * self)


@stands_for(_aten.addmm.default)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _scaled_sum(self, flambeau.mm(mat1, mat2), beta, alpha)


@stands_for(_aten.addmv.default)
def addmv(self: Tensor, mat1: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    return _scaled_sum(self, flambeau.mv(mat1, vec), beta, alpha)


@stands_for(_aten.baddbmm.default)
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1
            ) -> Tensor:
    return _scaled_sum(self, flambeau.bmm(batch1, batch2), beta, alpha)


@stands_for(_aten.mv.default)
def mv(self: Tensor, vec: Tensor) -> Tensor:
    return (self * vec).sum(1)


@stands_for(_aten.dot.default)
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    return (self * tensor).sum()


@stands_for(_aten.trace.default)
def trace(self: Tensor) -> Tensor:
    return self.diagonal().sum()


@stands_for(_aten.rsub.Tensor)
def rsub(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Tensor:
    return flambeau.sub(other, self, alpha=alpha)


@stands_for(_aten.deg2rad.default)
def deg2rad(self: Tensor) -> Tensor:
    return self * (math.pi / 180)


@stands_for(_aten.rad2deg.default)
def rad2deg(self: Tensor) -> Tensor:
    return self * (180 / math.pi)


@stands_for(_aten.frac.default)
def frac(self: Tensor) -> Tensor:
    return self - flambeau.trunc(self)


@stands_for(_aten.sinc.default)
def sinc(self: Tensor) -> Tensor:
    at = self * math.pi
    return _where(at == 0, 1, flambeau.sin(at) / at)


@stands_for(_aten.heaviside.default)
def heaviside(self: Tensor, values: Tensor) -> Tensor:
    return _where(self == 0, values, (self > 0).to(self.dtype))


@stands_for(_aten.xlogy.Tensor)
def xlogy(self: Tensor, other: Tensor) -> Tensor:
    product = _where(self == 0, 0, self * flambeau.log(other))
    return _where(other.isnan(), math.nan, product)


@stands_for(_aten.nan_to_num.default, in_float=False)
def nan_to_num(self: Tensor, nan: float | None = None, posinf: float | None = None,
               neginf: float | None = None) -> Tensor:
    limits = flambeau.finfo(self.dtype)
    found = _where(self.isnan(), 0.0 if nan is None else nan, self)
    found = _where(self == -math.inf, limits.min if neginf is None else neginf, found)
    return _where(self == math.inf, limits.max if posinf is None else posinf, found)


@stands_for(_aten.logaddexp.default)
def logaddexp(self: Tensor, other: Tensor) -> Tensor:
    larger, smaller = flambeau.maximum(self, other), flambeau.minimum(self, other)
    equal = (self == other) & self.isinf()      # both infinite: their difference is no number
    return _where(equal, self, larger + flambeau.log1p(flambeau.exp(smaller - larger)))


@stands_for(_aten.logsumexp.default)
def logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    top = flambeau.amax(self, dim, True)
    top = _where(top.isinf(), 0, top)
    found = flambeau.log(flambeau.exp(self - top).sum(dim, keepdim=True)) + top
    return found if keepdim else found.squeeze(tuple(dim))


@stands_for(_aten.std.correction)
def std(self: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return flambeau.sqrt(flambeau.var(self, dim, correction=correction, keepdim=keepdim))


@stands_for(_aten.masked_fill.Scalar, _aten.masked_fill.Tensor, in_float=False)
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    value = value.to(self.dtype) if isinstance(value, Tensor) else flambeau.tensor(
        value, dtype=self.dtype)
    return _where(mask, value, self)


# ---- parts of tensors ---------------------------------------------------------------------------

@stands_for(_aten.select_backward.default, in_float=False)
def select_backward(grad_output: Tensor, input_sizes: Any, dim: int, index: int) -> Tensor:
    return flambeau.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@stands_for(_aten.slice_backward.default, in_float=False)
def slice_backward(grad_output: Tensor, input_sizes: Any, dim: int, start: int, end: int, step: int
                   ) -> Tensor:
    return flambeau.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end,
                                  step)


@stands_for(_aten.diagonal_backward.default, in_float=False)
def diagonal_backward(grad_output: Tensor, input_sizes: Any, offset: int, dim1: int, dim2: int
                      ) -> Tensor:
    return flambeau.diagonal_scatter(grad_output.new_zeros(input_sizes), grad_output, offset, dim1,
                                     dim2)


@stands_for(_aten.embedding_dense_backward.default)
def embedding_dense_backward(grad_output: Tensor, indices: Tensor, num_weights: int,
                             padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    rows, places = grad_output.reshape(-1, grad_output.shape[-1]), indices.reshape(-1)
    if scale_grad_by_freq:
        counts = flambeau.bincount(places, minlength=num_weights)
        rows = rows / counts[places].unsqueeze(1)
    rows = rows.masked_fill((places == padding_idx).unsqueeze(1), 0)
    return rows.new_zeros((num_weights, rows.shape[1])).index_add(0, places, rows)


@stands_for(_aten.native_layer_norm.default, in_float=False)
def native_layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None,
                      bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    dims, x = list(range(-len(normalized_shape), 0)), wide(input)
    mean = x.mean(dims, keepdim=True)
    rstd = flambeau.rsqrt(flambeau.var(x, dims, correction=0, keepdim=True) + eps)
    y = (x - mean) * rstd
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias).to(input.dtype), mean, rstd
