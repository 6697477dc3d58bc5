"""Activation functions, element by element, and their gradients, which are ops of their own.

What is declared with ``_nn`` is what the functions of `nn.functional` of that name call; these are
in `activation_functions`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import flambeau
from flambeau import kernels
from flambeau.core.dtypes import from_numpy_dtype
from flambeau.core.modes import grad_enabled
from flambeau.core.promotion import type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import finfo
from flambeau.dispatch.declaration import op
from flambeau.dispatch.pointwise import pointwise
from flambeau.kernels.pointwise import gated_units
from flambeau.kernels.refused import refuse
from flambeau.ops.coercion import as_element, within
from flambeau.ops.node_names import plus
from flambeau.ops.out_types import FOUND_TYPE, SCALAR_TYPE, python_on_meta
from flambeau.ops.pointwise.arithmetic import threshold_backward
from flambeau.ops.pointwise.elementary import sigmoid, tanh

_INNER: dict[str, Any] = {"namespace": "_nn", "method": False}
_BACKWARD: dict[str, Any] = {"function": False, "method": False, "inplace": False, "out": False}
_TOP: dict[str, Any] = {"method": False, "out": False}
REAL = "bBilUcW8"                  # what these kernels are not compiled for: only for real floats


def _vjp_of_piecewise(backward: Any) -> Any:
    """The derivatives of a gradient that is that of straight pieces: it does not change with the
    point at which it is taken. `backward` calls the op that it is of."""
    def vjp(grad: Tensor, needs: Any, self: Tensor, *numbers: Any) -> Any:
        return (backward()(grad, self, *numbers) if needs[0] else None,
                flambeau.zeros_like(grad) if needs[1] else None)
    return vjp


def _vjp_of_backward(backward: Any, bend: Any) -> Any:
    """Those of any other: `bend` is the second derivative."""
    def vjp(grad: Tensor, needs: Any, grad_output: Tensor, self: Tensor, *numbers: Any) -> Any:
        return (backward()(grad, self, *numbers) if needs[0] else None,
                grad * grad_output * bend(self, *numbers) if needs[1] else None)
    return vjp


# ---- straight pieces -----------------------------------------------------------------------------


def _hardtanh_kernel(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    if x.dtype.kind == "u" and int(low) < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    if x.dtype.kind == "u":
        low, high = int(low), int(high)
    if x.dtype.char not in "fd":
        low, high = as_element(low, x.dtype), as_element(high, x.dtype)
    return kernels.hardtanh(x, low, high)


hardtanh = pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)", kernel=_hardtanh_kernel, **_INNER,
    out_type=FOUND_TYPE,
    refuses=("clamp_scalar_cpu", "bcUW8"),
    refused_as={"b": "Bool inputs not supported for hardtanh",
                "c": "clamp is not supported for complex types"},
    vjp=lambda grad, self, min_val, max_val: hardtanh_backward(grad, self, min_val, max_val))
_hardtanh_backward_vjp = _vjp_of_piecewise(lambda: hardtanh_backward)
hardtanh_backward = pointwise(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val)",
    kernel=kernels.hardtanh_backward, **_BACKWARD,
    vjp=lambda grad, needs, self, min_val, max_val: _hardtanh_backward_vjp(
        grad, needs, self, min_val, max_val))


@op("relu6(Tensor self) -> Tensor", **_INNER, out=False, inplace=True)
def relu6(self: Tensor) -> Tensor:
    return hardtanh(self, 0, 6)


leaky_relu = pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01)", **_INNER,
    out_type=FOUND_TYPE,
    kernel=lambda x, slope: kernels.leaky_relu(x, within(x, slope)),
    default_kernel=kernels.leaky_relu,
    refuses=("leaky_relu_cpu", REAL), inplace_node="LeakyReluBackward1",
    vjp=lambda grad, self, negative_slope: leaky_relu_backward(grad, self, negative_slope, False))
leaky_relu_backward = pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, "
    "bool self_is_result)", **_BACKWARD,
    kernel=lambda grad, x, slope, is_result: kernels.leaky_relu_backward(grad, x, slope),
    vjp=lambda grad, needs, self, negative_slope, self_is_result: (
        leaky_relu_backward(grad, self, negative_slope, self_is_result) if needs[0] else None,
        flambeau.zeros_like(grad) if needs[1] else None))

threshold = pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value)", method=False,
    kernel=lambda x, limit, value: kernels.threshold(x, within(x, limit), within(x, value)),
    refuses=("threshold_cpu", "bcUW8"), inplace_node="ThresholdBackward1", overlap="anywhere",
    vjp=lambda grad, self, threshold: threshold_backward(grad, self, threshold),
    doc="x where it exceeds `threshold`, else `value`.")

hardsigmoid = pointwise(
    "hardsigmoid(Tensor self)", kernel=kernels.hardsigmoid, **_INNER,
    out_type=FOUND_TYPE,
    refuses=("hardsigmoid_cpu", REAL),
    vjp=lambda grad, self: hardsigmoid_backward(grad, self))


_hardsigmoid_backward_vjp = _vjp_of_piecewise(lambda: hardsigmoid_backward)
hardsigmoid_backward = pointwise(
    "hardsigmoid_backward(Tensor grad_output, Tensor self)", **_BACKWARD,
    kernel=kernels.hardsigmoid_backward,
    vjp=lambda grad, needs, self: _hardsigmoid_backward_vjp(grad, needs, self))

hardswish = pointwise(
    "hardswish(Tensor self)", kernel=kernels.hardswish, **_INNER,
    refuses=("hardswish_cpu", REAL), vjp=lambda grad, self: hardswish_backward(grad, self))
hardswish_backward = pointwise(
    "hardswish_backward(Tensor grad_output, Tensor self)", kernel=kernels.hardswish_backward,
    **_BACKWARD, vjp=lambda grad, needs, grad_output, self: (
        hardswish_backward(grad, self) if needs[0] else None,
        flambeau.where((self > -3) & (self < 3), grad * grad_output / 3, 0) if needs[1] else None))

hardshrink = pointwise(
    "hardshrink(Tensor self, Scalar lambd=0.5)", inplace=False,
    kernel=lambda x, lambd: kernels.hardshrink(x, float(x.dtype.type(within(x, lambd)))),
    refuses=("hardshrink_cpu", REAL), out_type=FOUND_TYPE,
    vjp=lambda grad, self, lambd: hardshrink_backward(grad, self, lambd),
    doc="x where \\|x\\| exceeds `lambd`, else 0.")


def _softshrink_kernel(x: np.ndarray, limit: Any) -> np.ndarray:
    if type(limit) is not float:
        limit = as_element(limit, np.dtype(float))
    if not 0 <= limit <= 65504:
        most = finfo(from_numpy_dtype(x.dtype)).max
        if not 0 <= limit <= most:
            raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype "
                               f"{type_name(from_numpy_dtype(x.dtype))}, but found {limit:g}")
    return kernels.softshrink(x, limit)


softshrink = pointwise(
    "softshrink(Tensor self, Scalar lambd=0.5)", kernel=_softshrink_kernel, **_INNER, inplace=False,
    refuses=("softshrink_check", REAL), out_type=FOUND_TYPE,
    vjp=lambda grad, self, lambd: softshrink_backward(grad, self, lambd),
    doc="x moved towards 0 by `lambd`, but not past it.")


def _shrink_backward(name: str, gradient: str) -> Any:
    vjp = _vjp_of_piecewise(lambda: backward)
    backward = pointwise(
        f"{name}_backward(Tensor {gradient}, Tensor self, Scalar lambd)", **_BACKWARD,
        kernel=kernels.shrink_backward,
        vjp=lambda grad, needs, self, lambd: vjp(grad, needs, self, lambd))
    return backward


hardshrink_backward = _shrink_backward("hardshrink", "grad_out")
softshrink_backward = _shrink_backward("softshrink", "grad_output")


# ---- exponential ---------------------------------------------------------------------------------


def _elu_kernel(x: np.ndarray, alpha: Any, scale: Any, input_scale: Any) -> np.ndarray:
    return kernels.elu(x, within(x, alpha), within(x, scale), within(x, input_scale))


elu = pointwise(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", kernel=_elu_kernel,
    default_kernel=lambda x: kernels.elu(x), refuses=("elu_cpu", REAL), inplace_node="EluBackward1",
    out_type=FOUND_TYPE, **_INNER, vjp=lambda grad, self, alpha, scale, input_scale: elu_backward(
        grad, alpha, scale, input_scale, False, self))


def _elu_backward_kernel(grad: np.ndarray, x: np.ndarray, alpha: Any, scale: Any, input_scale: Any,
                         is_result: bool) -> np.ndarray:
    if not is_result:
        return kernels.elu_backward(grad, x, alpha, scale, input_scale)
    if alpha < 0:
        raise RuntimeError("In-place elu backward calculation is triggered with a negative slope "
                           "which is not supported. This is caused by calling in-place forward "
                           "function with a negative slope, please call out-of-place version "
                           "instead.")
    return kernels.elu_backward_of_result(grad, x, alpha, scale, input_scale)


def _elu_backward_vjp(grad: Tensor, needs: Any, grad_output: Tensor, self_or_result: Tensor,
                      alpha: Any, scale: Any, input_scale: Any, is_result: bool) -> Any:
    numbers = alpha, scale, input_scale, is_result
    x, low = self_or_result, None
    if needs[1]:
        slope = scale * input_scale
        low = flambeau.where(x <= 0, grad * grad_output * (
            input_scale if is_result else (x * input_scale).exp() * (alpha * slope * input_scale)),
            0.0)
    return elu_backward(grad, *numbers, x) if needs[0] else None, low


elu_backward = pointwise(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
    "bool is_result, Tensor self_or_result)", kernel=_elu_backward_kernel, **_BACKWARD,
    vjp=_elu_backward_vjp)


def _celu_kernel(x: np.ndarray, alpha: Any) -> np.ndarray:
    alpha = as_element(alpha, np.dtype(float))
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu_kernel(x, alpha, 1, 1 / alpha)


celu = pointwise(
    "celu(Tensor self, Scalar alpha=1.0)", kernel=_celu_kernel,
    default_kernel=lambda x: kernels.elu(x),
    **_TOP, refuses=("elu_cpu", REAL), inplace_node="CeluBackward1",
    vjp=lambda grad, self, alpha: elu_backward(grad, alpha, 1, 1.0 / alpha, False, self),
    doc="max(0, x) + min(0, alpha · (exp(x / alpha) - 1)). Barron, 2017.")
_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@op("selu(Tensor self) -> Tensor", inplace=True, inplace_function=True, **_TOP,
    inplace_node="EluBackward1")
def selu(self: Tensor) -> Tensor:
    """`elu` scaled so that signals keep mean 0 and variance 1. Klambauer et al., NeurIPS 2017."""
    return elu(self, *_SELU)


def _silu_vjp(grad: Tensor, self: Tensor) -> Tensor:
    """The gradient, made of ops that have derivatives where those may be asked for."""
    if not grad_enabled():
        return silu_backward(grad, self)
    s = sigmoid(self)
    factor, bend = s, plus(self * (1 - s), 1)
    if self._array.dtype.kind in "cW":
        factor, bend = factor.conj(), bend.conj()
    return grad * factor * bend


silu = pointwise(
    "silu(Tensor self)", kernel=kernels.silu, **_INNER, refuses=("silu_cpu", "bBilUW8"),
    out_type=python_on_meta(FOUND_TYPE),
    vjp=_silu_vjp,
    jvp=lambda self, self_t: _silu_vjp(self_t.conj(), self).conj()
    if self._array.dtype.kind == "c" else _silu_vjp(self_t, self))


def _silu_second_derivative(x: Tensor) -> Tensor:
    s = sigmoid(x)
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def _silu_backward_vjp(grad: Tensor, needs: Any, grad_output: Tensor, self: Tensor) -> Any:
    along = bend = None
    if needs[1]:
        along, bend = grad, _silu_second_derivative(self)
        if self._array.dtype.kind in "cW":
            along, bend = along.conj(), bend.conj()
    return (silu_backward(grad, self) if needs[0] else None,
            along * grad_output * bend if needs[1] else None)


silu_backward = pointwise(
    "silu_backward(Tensor grad_output, Tensor self)", kernel=kernels.silu_backward, **_BACKWARD,
    vjp=lambda grad, needs, grad_output, self: _silu_backward_vjp(grad, needs, grad_output, self))


def _mish_vjp(grad: Tensor, self: Tensor) -> Tensor:
    if not grad_enabled():
        return mish_backward(grad, self)
    t = tanh(softplus(self))
    return grad * (t + self * sigmoid(self) * (1 - t * t))


mish = pointwise("mish(Tensor self)", kernel=kernels.mish, **_INNER, refuses=("mish_cpu", REAL),
                 out_type=FOUND_TYPE, vjp=_mish_vjp)


def _mish_second_derivative(x: Tensor) -> Tensor:
    t, s = tanh(softplus(x)), sigmoid(x)
    bend = s * (1 - t * t)
    return bend * (2 + x * ((1 - s) - 2 * t * s))


_mish_backward_vjp = _vjp_of_backward(lambda: mish_backward, _mish_second_derivative)
mish_backward = pointwise(
    "mish_backward(Tensor grad_output, Tensor self)", kernel=kernels.mish_backward, **_BACKWARD,
    vjp=lambda grad, needs, grad_output, self: _mish_backward_vjp(grad, needs, grad_output, self))

softplus = pointwise(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20)", **_INNER, inplace=False,
    kernel=lambda x, beta, threshold: kernels.softplus(x, within(x, beta), within(x, threshold)),
    default_kernel=kernels.softplus, refuses=("softplus_cpu", REAL), out_type=FOUND_TYPE,
    vjp=lambda grad, self, beta, threshold: softplus_backward(grad, self, beta, threshold),
    doc="log(1 + exp(beta · x)) / beta; x itself where beta · x exceeds `threshold`.")


def _softplus_second_derivative(x: Tensor, beta: Any, threshold: Any) -> Tensor:
    s = sigmoid(x * beta)
    return flambeau.where(x * beta > threshold, 0.0, s * (1 - s) * beta)


_softplus_backward_vjp = _vjp_of_backward(lambda: softplus_backward, _softplus_second_derivative)
softplus_backward = pointwise(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold)",
    kernel=kernels.softplus_backward, **_BACKWARD,
    vjp=lambda grad, needs, grad_output, self, beta, threshold: _softplus_backward_vjp(
        grad, needs, grad_output, self, beta, threshold))


def _log_sigmoid_kernel(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By rows in memory, whatever x is."""
    x = x if x.flags.c_contiguous else np.ascontiguousarray(x)
    return kernels.logsigmoid(x), kernels.exp(kernels.negative(kernels.absolute(x)))


log_sigmoid_forward = op(
    "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)", method=False,
    function=False, out=False, returns=tuple, core="()->(),()",
    kernel=_log_sigmoid_kernel, refuses=("log_sigmoid_cpu", REAL), node="LogSigmoidBackward0",
    differentiable=(True, False),
    d_self=lambda grad, self, buffer: log_sigmoid_backward(grad, self, buffer),
    jvp=lambda self, self_t, buffer: (log_sigmoid_backward(self_t, self, buffer), None))


@op("log_sigmoid(Tensor self) -> Tensor", **_INNER,
    out_type=SCALAR_TYPE, out_reported_as="log_sigmoid_forward", out_resized=False)
def log_sigmoid(self: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return log_sigmoid_forward(self)[0]


log_sigmoid_backward = pointwise(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer)", **_BACKWARD,
    kernel=lambda grad, x, buffer: kernels.logsigmoid_backward(grad, x), nondiff="buffer",
    vjp=lambda grad, needs, grad_output, self, buffer: (
        log_sigmoid_backward(grad, self, buffer) if needs[0] else None,
        -(grad * grad_output * sigmoid(self) * sigmoid(-self)) if needs[1] else None, None))

# ---- by the normal distribution ------------------------------------------------------------------


def _gelu_kernel(x: np.ndarray, approximate: str) -> np.ndarray:
    if approximate == "none":
        return kernels.gelu(x)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return kernels.gelu_tanh(x)


def _gelu_backward_kernel(grad: np.ndarray, x: np.ndarray, approximate: str) -> np.ndarray:
    return (kernels.gelu_backward if approximate == "none" else kernels.gelu_tanh_backward)(grad, x)


gelu = pointwise(
    'gelu(Tensor self, *, str approximate="none")', kernel=_gelu_kernel,
    default_kernel=kernels.gelu, **_INNER, refuses=("GeluKernelImpl", REAL), out_type=FOUND_TYPE,
    vjp=lambda grad, self, approximate: gelu_backward(grad, self, approximate=approximate),
    doc="""x Φ(x), Φ being the standard normal distribution function. Hendrycks and Gimpel, 2016.

    `approximate="tanh"`: ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))).

    >>> import flambeau
    >>> flambeau.nn.functional.gelu(flambeau.tensor([1.0]))
    tensor([0.8413])
    """)


def _gelu_second_derivative(x: Tensor, approximate: str) -> Tensor:
    if approximate == "none":
        return (x * x * -0.5).exp() * (2 - x * x) * (2 * np.pi) ** -0.5
    k, c = (2 / np.pi) ** 0.5, 0.044715
    t = tanh((x + x * x * x * c) * k)
    first, slope = 1 - t * t, (x * x * (3 * c) + 1) * k
    return first * slope + x * 0.5 * first * (x * (6 * c * k) - t * slope * slope * 2)


def _gelu_backward_vjp(grad: Tensor, needs: Any, grad_output: Tensor, self: Tensor, approximate: str
                       ) -> Any:
    return (gelu_backward(grad, self, approximate=approximate) if needs[0] else None,
            grad * grad_output * _gelu_second_derivative(self, approximate) if needs[1] else None)


gelu_backward = pointwise(
    'gelu_backward(Tensor grad_output, Tensor self, *, str approximate="none")',
    kernel=_gelu_backward_kernel, default_kernel=kernels.gelu_backward, **_BACKWARD,
    vjp=_gelu_backward_vjp)

# ---- with weights, and with gates ----------------------------------------------------------------

_prelu_kernel = pointwise(
    "_prelu_kernel(Tensor self, Tensor weight)", method=False, inplace=False, out=False,
    kernel=kernels.leaky_relu,
    vjp=lambda grad, self, weight: _prelu_kernel_backward(grad, self, weight))


def _prelu_backward_vjp(grads: Any, grad_output: Tensor, self: Tensor, weight: Tensor) -> Any:
    by_x, by_weight = [flambeau.zeros_like(self) if g is None else g for g in grads]
    above = self > 0
    return (flambeau.where(above, by_x, by_x * weight + by_weight * self),
            flambeau.where(above, 0.0, by_weight * grad_output),
            flambeau.where(above, 0.0, by_x * grad_output))


_prelu_kernel_backward = op(
    "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
    kernel=gated_units.prelu_backward, core="(),(),()->(),()", function=False, method=False,
    out=False,
    vjp=lambda grad, grad_output, self, weight: _prelu_backward_vjp(
        grad, grad_output, self, weight))


@op("prelu(Tensor self, Tensor weight) -> Tensor", out=False, autocast="lower")
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight · x below; `weight` has one element, or one a channel (dimension 1)."""
    x, w = self._array, weight._array
    shape, n = x.shape, w.size
    if x.dtype != w.dtype:
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           f"{type_name(self.dtype)} and {type_name(weight.dtype)}")
    refuse(x, REAL, "prelu_cpu")
    if n != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if n != channels:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found "
                               f"parameter numbers = {n} and channel size = {channels}.")
    if w.ndim > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{w.ndim}")
    if len(shape) == 1:
        return _prelu_kernel(self, weight)
    return _prelu_kernel(
        self, weight.view((1, n, *(1,) * (len(shape) - 2)) if len(shape) > 1 else ()))


def _prepare_glu(self: Tensor, dim: int) -> tuple[Tensor, int]:
    shape = self._array.shape
    if not shape:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size "
                           f"{shape[dim]}")
    refuse(self._array, REAL, "glu_cpu")
    return self, dim


glu = op("glu(Tensor self, int dim=-1) -> Tensor", kernel=gated_units.glu, canonical=_prepare_glu,
         kernel_checks=True, dims="dim", refuses=("glu_cpu", REAL), **_INNER,
         d_self=lambda grad, self, dim: glu_backward(grad, self, dim),
         jvp=lambda self, self_t, dim: _glu_tangent(self, self_t, dim),
         doc="a · sigmoid(b), where a and b are the halves of `input` along `dim`. Dauphin et al., "
             "2017.")


def _glu_tangent(self: Tensor, moving: Tensor, dim: int) -> Tensor:
    a, b = self.chunk(2, dim)
    da, db = moving.chunk(2, dim)
    s = sigmoid(b)
    return s * (da + a * (1 - s) * db)


def _glu_backward_vjp(grad: Tensor, grad_output: Tensor, self: Tensor, dim: int) -> Any:
    (a, b), (to_a, to_b) = self.chunk(2, dim), grad.chunk(2, dim)
    s = sigmoid(b)
    slope = s * (1 - s)
    mixed = grad_output * slope
    return (to_a * s + to_b * a * slope,
            flambeau.cat([to_b * mixed, to_a * mixed + to_b * a * mixed * (1 - 2 * s)], dim))


glu_backward = op("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
                  kernel=gated_units.glu_backward, dims="dim", function=False, method=False,
                  out=False, vjp=_glu_backward_vjp)
