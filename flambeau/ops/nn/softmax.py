"""Softmax, its logarithm, and sampling through it."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import flambeau
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.op import class_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.network import softmax as kernels
from flambeau.ops.out_types import OUT_TYPE
from flambeau.ops.view.conversion import cast

_INSIDE: dict[str, Any] = {"function": False, "method": False, "out": False}
_REAL = "bBilUcW8"


def _kernel_name(name: str) -> Any:
    """What PyTorch calls its kernel, by where the dimension is."""
    return lambda x, dim=-1, *_: \
        f"{name}{'_lastdim' if not x.ndim or dim == x.ndim - 1 else ''}_kernel_impl"


def _backward_name(name: str) -> Any:
    return lambda grad, y, dim, *_: _kernel_name(f"{name}_backward")(grad, dim)


def _declare(name: str, kernel: Any, backward: Any, tangent: Any, doc: str) -> Any:
    """`softmax` of a dimension, by the op that has the derivative; gives both functions."""
    def run(x: Any, dim: int, half_to_float: bool) -> Any:
        if half_to_float:
            raise RuntimeError(f"{name} with half to float conversion is not supported on CPU")
        return kernel(x, dim) if x.size else x.copy()

    inner = op(
        f"_{name}(Tensor self, int dim, bool half_to_float) -> Tensor",
        kernel=run, dims="dim", shape="self", refuses=(_kernel_name(name), _REAL), method=False,
        out=False, as_given=True,
        node=f"{class_name(name)[:-1]}0",
        d_self=lambda grad, result, dim: backward()(grad, result, dim, result.dtype), jvp=tangent)

    def body(self: Tensor, dim: int, dtype: Any) -> Tensor:
        if dtype is not None:
            self = cast(self, as_numpy_dtype(dtype))
        return inner(self, dim, False)

    return inner, op(f"{name}.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                     body=body, out_type=OUT_TYPE, out_reported_as=f"aten::{name}", doc=doc)


# ---- softmax -------------------------------------------------------------------------------------

_softmax, softmax = _declare(
    "softmax", kernels.softmax, lambda: _softmax_backward_data,
    lambda self_t, result, dim: _softmax_backward_data(self_t, result, dim, result.dtype),
    """exp(x) / Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """)


def _by_output(grad: Tensor, g: Tensor, y: Tensor, dim: int) -> Tensor:
    return grad * g - grad * (g * y).sum(dim, True) - g * (grad * y).sum(dim, True)


def _softmax_double_backward(g: Tensor, y: Tensor, t: Tensor, dim: int) -> Tensor:
    return t * (g - (g * y).sum(dim, True)) - y * (g * t).sum(dim, True)


_softmax_backward_data = op(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
    "Tensor", kernel=lambda grad, y, dim, input_dtype: kernels.softmax_backward(grad, y, dim),
    dims="dim", shape="self", method=False, out=False, refuses=(_backward_name("softmax"), _REAL),
    d_grad_output=lambda grad, output, dim: _softmax_backward_data(
        grad, output, dim, output.dtype),
    d_output=lambda grad, grad_output, output, dim: _by_output(grad, grad_output, output, dim),
    jvp=lambda grad_output, output, grad_output_t, output_t, dim: (
        _softmax_backward_data(grad_output_t, output, dim, output.dtype)
        + _softmax_double_backward(grad_output, output, output_t, dim)))

_log_softmax, log_softmax = _declare(
    "log_softmax", kernels.log_softmax, lambda: _log_softmax_backward_data,
    lambda self_t, result, dim: self_t - (result.exp() * self_t).sum(dim, True),
    """x - log Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.log_softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """)

_log_softmax_backward_data = op(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype)"
    " -> Tensor", dims="dim", shape="self", method=False, out=False,
    refuses=(_backward_name("log_softmax"), _REAL),
    kernel=lambda grad, y, dim, input_dtype: kernels.log_softmax_backward(grad, y, dim),
    d_grad_output=lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, True),
    d_output=lambda grad, grad_output, output, dim: -grad * output.exp() * grad_output.sum(
        dim, True))


def _safe_softmax_kernel(x: Any, dim: int, dtype: Any) -> Any:
    result = kernels.softmax(x, dim) if x.size else x.copy()
    nothing = (x == -np.inf).all(dim, keepdims=True)
    if nothing.any():
        result[np.broadcast_to(nothing, x.shape)] = 0
    return result


def _prepare_safe_softmax(self: Tensor, dim: int, dtype: Any) -> tuple[Any, ...]:
    self = self if dtype is None else cast(self, as_numpy_dtype(dtype))
    return self, wrap_dim(dim, self.ndim), None


_safe_softmax = op(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    kernel=_safe_softmax_kernel, canonical=_prepare_safe_softmax, dims="dim", shape="self",
    method=False, out=False, refuses=(_kernel_name("softmax"), _REAL), node="SafeSoftmaxBackward0",
    d_self=lambda grad, result, dim: _softmax_backward_data(grad, result, dim, result.dtype),
    jvp=lambda self_t, result, dim: _softmax_backward_data(self_t, result, dim, result.dtype),
    doc="`softmax` with zeros where all elements along `dim` are -inf.")


# ---- with a mask ---------------------------------------------------------------------------------


def _prepare_masked_softmax(self: Tensor, mask: Tensor, dim: Any, mask_type: Any) -> tuple[Any,
                                                                                           ...]:
    """The mask in the shape of the input: `mask_type` 0 is one of (l, l), 1 of (n, l)."""
    if mask._array.dtype.kind != "b":
        raise RuntimeError("Mask should be a boolean tensor")
    shape = self._array.shape
    if mask._array.shape != shape:
        if mask_type is None:
            raise RuntimeError("Mask Type should be defined" if len(shape) == 4 else
                               "For mask_type == 2 mask shape should match input shape")
        wanted = {0: ("(L, L)", shape[-2:]), 1: ("(B, L)", (shape[0], shape[-1]))} if len(
            shape) == 4 else {}
        if mask_type not in wanted:
            raise RuntimeError("For mask_type == 2 mask shape should match input shape")
        if mask._array.shape != wanted[mask_type][1]:
            raise RuntimeError(f"For mask_type == {mask_type} mask shape should be "
                               f"{wanted[mask_type][0]}")
        mask = (mask[None, None] if mask_type == 0 else mask[:, None, None]).expand(shape)
    return self, mask, len(shape) - 1 if dim is None else wrap_dim(dim, len(shape)), mask_type


_masked_softmax = op(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    kernel=lambda x, mask, dim, mask_type: kernels.masked_softmax(x, mask, dim), method=False,
    out=False, canonical=_prepare_masked_softmax, dims="dim", shape="self",
    d_self=lambda grad, result, mask, dim:
    _masked_softmax_backward(grad, result, mask, dim))
_masked_softmax_backward = op(
    "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> "
    "Tensor", dims="dim", shape="self", **_INSIDE,
    d_grad_output=lambda grad, output, mask, dim: _masked_softmax_backward(grad, output, mask, dim),
    d_output=lambda grad, grad_output, output, dim: _by_output(grad, grad_output, output, dim),
    kernel=lambda grad, y, mask, dim: kernels.softmax_backward(
        grad, y, y.ndim - 1 if dim is None else dim))


# ---- as nn.functional has them -------------------------------------------------------------------


def implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that old code means when it gives none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=stacklevel + 2)
    return 0 if ndim in (0, 1, 3) else 1


@python_function(namespace="nn.functional", name="softmax")
def softmax_layer(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
                  dtype: Any = None) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.nn.functional.softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = implicit_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


@python_function(namespace="nn.functional")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
            dtype: Any = None) -> Tensor:
    """`softmax` of -x."""
    if dim is None:
        dim = implicit_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


@python_function(namespace="nn.functional", name="log_softmax")
def log_softmax_layer(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
                      dtype: Any = None) -> Tensor:
    """x - log Σ exp(x) along `dim`; with `dtype`, `input` is cast first."""
    if dim is None:
        dim = implicit_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


@python_function(namespace="nn.functional")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution: softmax((logits + noise) / tau).

    With `hard` the result is one-hot, and its gradient that of the soft sample.
    Jang et al., Categorical reparameterization with Gumbel-softmax, ICLR 2017.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -flambeau.empty_like(
        logits, memory_format=flambeau.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = flambeau.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]
