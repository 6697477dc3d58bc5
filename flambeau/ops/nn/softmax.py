"""Softmax, its logarithm, and sampling through it."""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.op import composite, primitive
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor, basis
from flambeau.kernels import softmax as kernels
from flambeau.kernels.refused import refuse


def _prepared(input: Tensor, dim: Any, dtype: Any, name: str) -> tuple[Tensor, int]:
    """The canonical arguments: `input` as a floating type, `dim` counted from the front."""
    x = input._array
    if dtype is not None:
        input = basis.cast(input, as_numpy_dtype(dtype))
        x = input._array
    if x.dtype.char not in "fd":
        where = "_lastdim" if x.ndim and dim in (-1, x.ndim - 1) else ""
        refuse(x, "bBilUcW8", f"{name}{where}_kernel_impl")
    n = x.ndim
    return input, dim if 0 <= dim < n else wrap_dim(dim, n)


# ---- softmax -------------------------------------------------------------------------------------


@primitive(lambda self, dim: kernels.softmax(self, dim), dims="dim", shape="self",
           d_self=lambda grad, result, dim: softmax_backward(grad, result, dim),
           jvp=lambda self_t, result, dim: softmax_backward(self_t, result, dim))
def softmax(input: Tensor, dim: Any = None, dtype: Any = None) -> Any:
    """exp(x) / Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return _prepared(input, dim, dtype, "softmax")


@primitive(lambda self, output, dim: kernels.softmax_backward(self, output, dim),
           tensors=("self", "output"), dims="dim", shape="self", method=False, namespace=None,
           node_name="SoftmaxBackwardDataBackward0",
           d_self=lambda grad, output, dim: softmax_backward(grad, output, dim),
           d_output=lambda grad, self, output, dim: _by_output(grad, self, output, dim),
           jvp=lambda self, output, self_t, output_t, dim: (
               softmax_backward(self_t, output, dim) + _along(self, output, output_t, dim)))
def softmax_backward(input: Tensor, output: Tensor, dim: int) -> Any:
    """y (g - Σ g y): the gradient of softmax from its result y."""
    return input, output, dim


def _by_output(grad: Tensor, g: Tensor, y: Tensor, dim: int) -> Tensor:
    return grad * g - grad * (g * y).sum(dim, True) - g * (grad * y).sum(dim, True)


def _along(g: Tensor, y: Tensor, t: Tensor, dim: int) -> Tensor:
    return t * (g - (g * y).sum(dim, True)) - y * (g * t).sum(dim, True)


@primitive(lambda self, dim: kernels.log_softmax(self, dim), dims="dim", shape="self",
           d_self=lambda grad, result, dim: log_softmax_backward(grad, result, dim),
           jvp=lambda self_t, result, dim: self_t - (result.exp() * self_t).sum(dim, True))
def log_softmax(input: Tensor, dim: Any = None, dtype: Any = None) -> Any:
    """x - log Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.log_softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _prepared(input, dim, dtype, "log_softmax")


@primitive(lambda self, output, dim: kernels.log_softmax_backward(self, output, dim),
           tensors=("self", "output"), dims="dim", shape="self", method=False, namespace=None,
           node_name="LogSoftmaxBackwardDataBackward0",
           d_self=lambda grad, output, dim: grad - (grad * output.exp()).sum(dim, True),
           d_output=lambda grad, self, output, dim: -grad * output.exp() * self.sum(dim, True))
def log_softmax_backward(input: Tensor, output: Tensor, dim: int) -> Any:
    """g - exp(y) Σ g: the gradient of log_softmax from its result y."""
    return input, output, dim


# ---- as nn.functional has them -------------------------------------------------------------------


def implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that old code means when it gives none."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.", stacklevel=stacklevel + 2)
    return 0 if ndim in (0, 1, 3) else 1


@composite(namespace="nn.functional", name="softmax")
def softmax_layer(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
                  dtype: Any = None) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`; with `dtype`, `input` is cast first.

    >>> import flambeau
    >>> flambeau.nn.functional.softmax(flambeau.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = implicit_dim("softmax", input._array.ndim, _stacklevel)
    return softmax(input, dim) if dtype is None else softmax(input, dim, dtype)


@composite(namespace="nn.functional")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
            dtype: Any = None) -> Tensor:
    """`softmax` of -x."""
    if dim is None:
        dim = implicit_dim("softmin", input._array.ndim, _stacklevel)
    return softmax(-input, dim, dtype)


@composite(namespace="nn.functional", name="log_softmax")
def log_softmax_layer(input: Tensor, dim: int | None = None, _stacklevel: int = 3,
                      dtype: Any = None) -> Tensor:
    """x - log Σ exp(x) along `dim`; with `dtype`, `input` is cast first."""
    if dim is None:
        dim = implicit_dim("log_softmax", input._array.ndim, _stacklevel)
    return log_softmax(input, dim) if dtype is None else log_softmax(input, dim, dtype)


@composite(namespace="nn.functional")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10,
                   dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution: softmax((logits + noise) / tau).

    With `hard` the result is one-hot, and its gradient that of the soft sample.
    Jang et al., Categorical reparameterization with Gumbel-softmax, ICLR 2017.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -flambeau.empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = flambeau.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


__all__ = ["gumbel_softmax", "log_softmax", "log_softmax_backward", "softmax", "softmax_backward",
           "softmin"]
