"""Ops of PyTorch's dispatcher that are derivatives of others, under its names and arguments: each
is the reverse mode of the op that it belongs to, and so has derivatives itself."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.dispatch.aten.functions import defines


def compute_vjp(function: Callable[..., Any], grad: Any, *inputs: Tensor) -> tuple[Any, ...]:
    """The gradients of `function(*inputs)`'s result, of gradient `grad`, with respect to `inputs`;
    they have a graph if gradients are recorded."""
    recorded = flambeau.is_grad_enabled()
    with flambeau.enable_grad():
        leaves = [x if recorded and x.requires_grad else x.detach().requires_grad_()
                  for x in inputs]
        return flambeau.autograd.grad(function(*leaves), leaves, grad, create_graph=recorded)


# ---- scans and choices --------------------------------------------------------------------------

@defines("cumprod_backward")
def _cumprod(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    return compute_vjp(lambda x: x.cumprod(dim), grad, input)[0]


@defines("cummaxmin_backward")
def _extremes(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    return flambeau.zeros_like(input).scatter_add(dim, indices, grad)


@defines("value_selecting_reduction_backward")
def _selected(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool
              ) -> Tensor:
    if not keepdim and len(sizes):
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(sizes).scatter(dim, indices, grad)


@defines("gather_backward")
def _gather(grad: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    return compute_vjp(lambda x: x.gather(dim, index, sparse_grad=sparse_grad), grad, self)[0]


@defines("index_select_backward")
def _index_select(grad: Tensor, self_sizes: Sequence[int], dim: int, index: Tensor) -> Tensor:
    return grad.new_zeros(self_sizes).index_add(dim, index, grad)


@defines("masked_scatter_backward")
def _masked_scatter(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    taken = grad_output.masked_select(mask)
    missing = math.prod(sizes) - taken.numel()
    return flambeau.cat([taken, taken.new_zeros(missing)]).view(sizes) if missing \
        else taken.view(sizes)


@defines("masked_select_backward")
def _masked_select(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    return compute_vjp(lambda x: x.masked_select(mask), grad, input)[0]


@defines("_segment_reduce_backward")
def _segment_reduce(grad: Tensor, output: Tensor, data: Tensor, reduce: str, *,
                    lengths: Tensor | None = None, offsets: Tensor | None = None, axis: int = 0,
                    initial: Any = None) -> Tensor:
    return compute_vjp(
        lambda x: flambeau.segment_reduce(x, reduce, lengths=lengths, offsets=offsets, axis=axis,
                                          unsafe=True, initial=initial), grad, data)[0]


# ---- functions of elements ----------------------------------------------------------------------

@defines("logit_backward")
def _logit(grad_output: Tensor, self: Tensor, eps: float | None = None) -> Tensor:
    slope = grad_output / (self * (1 - self))
    if eps is None:
        outside = (self < 0) | (self > 1)
        return slope.masked_fill(outside, math.nan)
    return slope.masked_fill((self < eps) | (self > 1 - eps), 0.0)


@defines("infinitely_differentiable_gelu_backward")
def _gelu(grad: Tensor, self: Tensor) -> Tensor:
    below = 0.5 * flambeau.erfc(-self * math.sqrt(0.5))
    density = flambeau.exp(-0.5 * self * self) / math.sqrt(2 * math.pi)
    return grad * (below + self * density)


@defines("rrelu_with_noise_backward")
def _rrelu(grad_output: Tensor, self: Tensor, noise: Tensor, lower: float, upper: float,
           training: bool, self_is_result: bool) -> Tensor:
    if training and upper - lower > 1e-6:
        return grad_output * noise
    slope = (lower + upper) / 2
    return flambeau.where(self > 0, grad_output, grad_output * slope)


def _halves(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    first, second = x.chunk(2, dim)
    return first, second


@defines("glu_jvp")
def _glu_tangent(glu: Tensor, x: Tensor, dx: Tensor, dim: int) -> Tensor:
    (_, gate), (d_value, d_gate) = _halves(x, dim), _halves(dx, dim)
    open_part = gate.sigmoid()
    return d_value * open_part + glu * (d_gate - open_part * d_gate)


@defines("glu_backward_jvp")
def _glu_gradient_tangent(grad_x: Tensor, grad_glu: Tensor, x: Tensor, dgrad_glu: Tensor,
                          dx: Tensor, dim: int) -> Tensor:
    return flambeau.func.jvp(
        lambda g, y: flambeau.ops.aten.glu_backward(g, y, dim), (grad_glu, x), (dgrad_glu, dx))[1]


# ---- matrices -----------------------------------------------------------------------------------

@defines("trace_backward")
def _trace(grad: Tensor, sizes: Sequence[int]) -> Tensor:
    if len(sizes) != 2:
        raise RuntimeError("expected matrix input")
    return flambeau.eye(*sizes, dtype=grad.dtype, device=grad.device) * grad


@defines("matrix_exp_backward")
def _matrix_exp(self: Tensor, grad: Tensor) -> Tensor:
    return compute_vjp(flambeau.matrix_exp, grad, self)[0]


@defines("matmul_backward")
def _matmul(grad: Tensor, self: Tensor, other: Tensor, mask: Sequence[bool]
            ) -> tuple[Tensor | None, Tensor | None]:
    first, second = compute_vjp(flambeau.matmul, grad, self, other)
    return first if mask[0] else None, second if mask[1] else None


# ---- layers -------------------------------------------------------------------------------------

@defines("affine_grid_generator_backward")
def _affine_grid(grad: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    dims = len(size) - 2
    theta = grad.new_zeros(size[0], dims, dims + 1)
    return compute_vjp(lambda x: flambeau.nn.functional.affine_grid(
        x, list(size), align_corners=align_corners), grad, theta)[0]


@defines("conv_tbc_backward")
def _conv_tbc(self: Tensor, input: Tensor, weight: Tensor, bias: Tensor, pad: int
              ) -> tuple[Any, ...]:
    return compute_vjp(lambda x, w, b: flambeau.conv_tbc(x, w, b, pad), self, input, weight, bias)


@defines("max_pool2d_backward")
def _max_pool2d(grad_output: Tensor, self: Tensor, kernel_size: Any, stride: Any = (),
                padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Tensor:
    return compute_vjp(lambda x: flambeau.max_pool2d(
        x, kernel_size, stride, padding, dilation, ceil_mode), grad_output, self)[0]


@defines("_weight_norm_interface_backward", "_weight_norm_differentiable_backward")
def _weight_norm(grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
                 ) -> tuple[Any, ...]:
    norm = flambeau.ops.aten._weight_norm
    return compute_vjp(lambda v, g: norm(v, g, dim), grad_w, saved_v, saved_g)


@defines("_fused_rms_norm_backward")
def _rms_norm(grad_out: Tensor, input: Tensor, normalized_shape: Sequence[int], rstd: Tensor,
              weight: Tensor | None, output_mask: Sequence[bool]
              ) -> tuple[Tensor | None, Tensor | None]:
    dims = tuple(range(-len(normalized_shape), 0))
    scaled = input * rstd
    by_weight = grad_out if weight is None else grad_out * weight
    to_input = rstd * (by_weight - scaled * (by_weight * scaled).mean(dims, keepdim=True))
    leading = tuple(range(input.ndim - len(normalized_shape)))
    to_weight = (grad_out * scaled).sum(leading) if leading else grad_out * scaled
    return (to_input if output_mask[0] else None,
            to_weight if output_mask[1] and weight is not None else None)
