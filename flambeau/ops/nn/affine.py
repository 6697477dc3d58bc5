"""The affine map of rows: products with a transposed weight, and a bias."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flambeau import kernels
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import broadcast_shapes, is_expandable_to, written_shape_error
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.kernels._extension import compiled
from flambeau.ops.linalg.matmul import (
    conj,
    fits,
    matmul,
    mm,
    product,
    product_in_single,
    same_types,
    to_left,
    unlike_sizes,
)
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.pointwise.arithmetic import add, mul
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import expand, movedim, t, transpose, unsqueeze


def _affine(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    if bias is not None and input.dtype.itemsize <= 2 and input.dtype.kind not in "bui":
        # half types are rounded once, after the bias
        single = product_in_single(input, weight.T, True)
        return convert(np.asarray(kernels.add(single, convert(bias, single.dtype))), input.dtype)
    r = product(input, weight.T)
    if bias is None:
        return r
    in_place = r.dtype is bias.dtype and type(r) is np.ndarray
    return kernels.add(r, bias, r) if in_place else kernels.add(r, bias)


@compiled("affine")
def _linear_kernel(input: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    fits(weight.ndim in (1, 2) and input.ndim > 0 and input.shape[-1] == weight.shape[-1]
         and input.dtype == weight.dtype
         and (bias is None or (bias.dtype == input.dtype and _is_expandable_bias(bias, input,
                                                                                 weight))))
    added = bias is None or _joins_product(bias, input)
    rows = input if weight.ndim == 1 else input.reshape(prod(input.shape[:-1]), input.shape[-1])
    found = _affine(rows, weight, bias if added else None)
    found = found.reshape(input.shape[:-1] + weight.shape[:-1])
    return found if added else kernels.add(found, bias)


def _linear_weight_vjp(grad: Tensor, input: Tensor, weight_by_columns: bool) -> Tensor:
    if grad._array.ndim < input._array.ndim:    # a weight that is one row
        return _linear_weight_vjp(unsqueeze(grad, -1), input, False).squeeze(0)
    k, m = input._array.shape[-1], grad._array.shape[-1]
    if input._array.ndim == 1:
        return mul(unsqueeze(grad, 1), conj(input))
    rows = prod(input._array.shape[:-1])
    grad, input = reshape(grad, (rows, m)), conj(reshape(input, (rows, k)))
    return t(mm(t(input), grad)) if weight_by_columns else mm(t(grad), input)


def _linear_batched(size: int, dims: Any, input: Tensor, weight: Tensor, bias: Any) -> Any:
    x = input if dims[0] is None else movedim(input, dims[0], 0)
    if dims[1] is None and (bias is None or dims[2] is None):
        return linear(x, weight, bias), 0
    w = weight if dims[1] is None else movedim(weight, dims[1], 0)
    if w._array.ndim == 1 + (dims[1] is not None):          # one row, which goes without bias
        at = (dims[0], None if dims[1] is None else 0, None)
        return _linear_batched(size, at, input, unsqueeze(w, -2), None)[0].squeeze(-1), 0
    one = input._array.ndim - (dims[0] is not None) == 1
    if one:
        x = unsqueeze(x, -2)
    lead = x._array.ndim - (dims[0] is not None) - 2
    if dims[1] is not None and lead > 0:
        w = reshape(w, (size, *(1,) * lead, *w._array.shape[1:]))
    r = matmul(x, transpose(w, -2, -1))
    if bias is not None:
        b = bias if dims[2] is None else movedim(bias, dims[2], 0)
        if dims[2] is not None:
            rank = r._array.ndim if dims[0] is not None or dims[1] is not None \
                else r._array.ndim + 1
            b = reshape(b, (size, *(1,) * (rank - 2), b._array.shape[-1]))
        r = add(r, b)
    return (r.squeeze(-2) if one else r), 0


def _joins_product(bias: np.ndarray, input: np.ndarray) -> bool:
    """Is the bias added to all rows within their product? Otherwise in place, afterwards."""
    return input.ndim == 2 or (input.flags.c_contiguous and (
        bias.ndim == 1 or sum([n != 1 for n in bias.shape]) == 1))


def _is_expandable_bias(bias: np.ndarray, input: np.ndarray, weight: np.ndarray) -> bool:
    """Does the bias expand to what it is added to?"""
    shape = input.shape[:-1] + weight.shape[:-1]
    if not _joins_product(bias, input):
        return is_expandable_to(bias.shape, shape)
    return weight.ndim == 2 and (bias.shape == weight.shape[:-1] or is_expandable_to(
        bias.shape, (prod(shape[:-1]), shape[-1])))


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    w, x = weight._array, input._array
    if not w.ndim or not x.ndim:
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are "
                           f"{x.ndim}D and {w.ndim}D")
    if w.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D")
    if bias is not None and not _joins_product(bias._array, x):
        bias = bias.to(input.dtype)
    elif bias is not None:
        for name, each in (("self", bias), ("mat1", input)):
            if each._array.dtype != w.dtype:
                raise RuntimeError(f"{name} and mat2 must have the same dtype, but got "
                                   f"{type_name(each.dtype)} and {type_name(weight.dtype)}")
        if w.ndim == 1:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    if w.ndim == 1:
        w = unsqueeze(weight, 0)._array         # lazy parameters say that they are
        if x.shape[-1] != w.shape[1]:
            a, b, rows = x.shape[-1], w.shape[1], prod(x.shape[:-1])
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same "
                f"number of elements, but got {a} and {b} elements respectively" if x.ndim == 1
                else f"size mismatch, got input ({rows}), mat ({rows}x{a}), vec ({b})")
    if x.shape[-1] != w.shape[-1]:
        raise unlike_sizes(input, weight, (prod(x.shape[:-1]), x.shape[-1]), w.shape[::-1])
    if x.dtype != w.dtype:
        same_types(input, weight)
    if bias is not None and not _is_expandable_bias(bias._array, x, weight._array):
        shape = x.shape[:-1] + weight._array.shape[:-1]
        if not _joins_product(bias._array, x):
            raise written_shape_error(shape, broadcast_shapes(shape, bias._array.shape))
        expand(bias, (prod(shape[:-1]), shape[-1]))             # says what is wrong
    return input, weight, bias


def _as_addmm(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """A linear layer as PyTorch computes it: rows times the transposed weight."""
    if weight.ndim != 2 or (bias is not None and bias.ndim != 1) or not input.ndim:
        return NotImplemented
    if bias is None:
        return input.matmul(weight.t())
    if input.ndim == 2:
        return bias.addmm(input, weight.t())
    rows = input.reshape(prod(input.shape[:-1]), input.shape[-1])
    return bias.addmm(rows, weight.t()).view(*input.shape[:-1], weight.shape[0])


def _linear_input_vjp(grad: Tensor, weight: Tensor, input_by_columns: bool) -> Tensor:
    if weight._array.ndim == 1:                 # a weight that is one row
        return mul(unsqueeze(grad, -1), conj(weight))
    if input_by_columns:
        *lead, m = grad._array.shape
        found = to_left(grad if len(lead) == 1 else reshape(grad, (prod(lead), m)), t(weight), True)
        return found if len(lead) == 1 else reshape(found, (*lead, found._array.shape[1]))
    return matmul(grad, conj(weight))


linear = op("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
            namespace="nn.functional", method=False, kernel=_linear_kernel, kernel_checks=True,
            canonical=_check_linear, core="(k),(m,k),(m)->(m)", node="AddmmBackward0",
            refuses=("addmm_impl_cpu_", "bUW0"), autocast="lower", out_type=OUT_TYPE,
            d_input=_linear_input_vjp, d_weight=_linear_weight_vjp,
            d_bias=lambda grad: grad, batch=_linear_batched, aten_calls=_as_addmm,
            jvp=lambda input, weight, bias, input_t, weight_t, bias_t: add(
                linear(input_t, weight, bias_t), linear(input, weight_t)),
            doc="""y = x Wᵀ + b: `input` (…, k), `weight` (m, k), `bias` (m) give (…, m).

    >>> import flambeau
    >>> flambeau.nn.functional.linear(flambeau.ones(1, 2), flambeau.ones(3, 2))
    tensor([[2., 2., 2.]])
    """)


