"""Activation functions. Those that torch lets write into their input take `inplace=True`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flambeau
from flambeau import kernels
from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.op import composite, linear, primitive, public
from flambeau.core.promotion import type_name
from flambeau.core.shapes import wrap_dim
from flambeau.core.tensor import Tensor
from flambeau.kernels import activations
from flambeau.kernels.random import rrelu_slopes
from flambeau.kernels.reference import compute_dtype
from flambeau.kernels.refused import no_kernel, refuse
from flambeau.ops.coercion import stored
from flambeau.ops.fused import fused
from flambeau.ops.inplace import make_inplace
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise import arithmetic as pointwise
from flambeau.ops.pointwise.elementary import sigmoid, tanh
from flambeau.ops.random.sampling import sampled, sampler
from flambeau.ops.refusals import refusing
from flambeau.type_info import finfo

BOTH = ("nn.functional", "torch")


def floating(x: np.ndarray, name: str) -> np.ndarray:
    """`x` if it holds real floating numbers; torch's refusal, which names a kernel, if not."""
    refuse(x, "bBilUcW8", name)
    return x


def within(x: np.ndarray, number: Any) -> Any:
    """`number` if it fits the type that elements of x are computed in; torch's error if not."""
    if type(number) in (float, int) and -_LARGEST <= number <= _LARGEST:
        return number
    return stored(number, compute_dtype(x.dtype) if x.dtype in FLOATING else x.dtype)


_LARGEST = float(np.finfo(np.float32).max)


def activation(kernel: Any, backward: Any, *, namespace: Any = "nn.functional",
               write: bool = False, **options: Any) -> Any:
    """A `fused` op whose last parameter is `inplace`; `write` also publishes `name_`."""
    def run(input: np.ndarray, *rest: Any) -> np.ndarray:
        return kernel(input, *[within(input, number) for number in rest[:-1]])

    def declare(body: Callable[..., Any]) -> Callable[..., Any]:
        function = fused(run if kernel.__code__.co_argcount > 1 else
                         lambda input, inplace: kernel(input), backward=backward,
                         when=lambda *args: args[-1] is False, namespace=namespace,
                         **options)(body)
        writer = make_inplace(function.op)
        if write:
            for space in (namespace,) if isinstance(namespace, str) else namespace:
                public[space][f"{function.op.name}_"] = writer
        return function
    return declare


def written(function: Any, input: Tensor, *args: Any) -> Tensor:
    """The result of an op, written into its input."""
    return function.op.inplace_op.function(input, *args)


# ---- rectifiers ----------------------------------------------------------------------------------


@composite(namespace="nn.functional")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x).

    >>> import flambeau
    >>> flambeau.nn.functional.relu(flambeau.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else pointwise.relu(input)


def _hardtanh_kernel(x: np.ndarray, low: float, high: float) -> np.ndarray:
    _check_hardtanh(x, low, high)
    return kernels.hardtanh(x, low, high)


def _check_hardtanh(x: np.ndarray, low: float, high: float) -> None:
    kind = x.dtype.kind
    if kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind in "cW":
        raise NotImplementedError("clamp is not supported for complex types")
    if low > high:
        raise ValueError("min_val cannot be greater than max_val")
    refuse(x, "U8", "clamp_scalar_cpu")
    if kind == "u" and low < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


@activation(_hardtanh_kernel, lambda grad, input, min_val, max_val: kernels.hardtanh_backward(
    grad, input, min_val, max_val), write=True)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:
    """x cut off at `min_val` and `max_val`, where the slope is 0.

    >>> import flambeau
    >>> flambeau.nn.functional.hardtanh(flambeau.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if inplace:
        return written(hardtanh, input, min_val, max_val)
    _check_hardtanh(input._array, min_val, max_val)
    inside = (input > min_val) & (input < max_val)
    return flambeau.where(inside, input, input.detach().clamp(min_val, max_val))


@composite(namespace="nn.functional")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    return hardtanh(input, 0.0, 6.0, inplace)


@activation(lambda input, slope: kernels.leaky_relu(floating(input, "leaky_relu_cpu"), slope),
            lambda grad, input, negative_slope: kernels.leaky_relu_backward(
                grad, input, negative_slope), write=True)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope · x below."""
    if inplace:
        return written(leaky_relu, input, negative_slope)
    return flambeau.where(input > 0, input, input * negative_slope)


@primitive(lambda self, threshold, value: kernels.threshold(
               self, stored(threshold, self.dtype), stored(value, self.dtype)),
           d_self=lambda grad, self, threshold: threshold_passed(grad, self, threshold),
           jvp=lambda self, self_t, threshold: threshold_passed(self_t, self, threshold),
           batch=lambda size, dims, self, threshold, value: (
               _threshold(self, threshold, value), dims[0]),
           namespace=None, method=False, inplace=True, name="threshold_of",
           node_name="ThresholdBackward0")
def _threshold(input: Tensor, threshold: float, value: float) -> Any:
    return input, threshold, value


@linear(lambda grad, self, threshold: kernels.threshold_backward(
            grad, self, stored(threshold, self.dtype)),
        tensors=("grad", "self"), name="threshold_passed", namespace=None, method=False,
        core="(),()->()",
        node_name="ThresholdBackwardBackward0", d_self=None,
        d_grad=lambda grad, self, threshold: threshold_passed(grad, self, threshold))
def threshold_passed(input: Tensor, self: Tensor, threshold: float) -> Any:
    """A gradient, where `self` exceeds `threshold`."""
    return input, self, threshold


@composite(namespace=BOTH)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it exceeds `threshold`, else `value`."""
    return (written(_threshold, input, threshold, value) if inplace
            else _threshold(input, threshold, value))


def _write(name: str, function: Any, spaces: tuple[str, ...] = ("nn.functional",)) -> None:
    """Publish what writes into the input under torch's name, which the op itself does not have."""
    writer = make_inplace(function.op)
    writer.__name__ = writer.__qualname__ = writer.op.name = name
    for space in spaces:
        public[space][name] = writer


_write("threshold_", _threshold, BOTH)
_threshold.op.inplace_node, leaky_relu.op.inplace_node = "ThresholdBackward1", "LeakyReluBackward1"


def _elu_kernel(x: np.ndarray, alpha: float, scale: float = 1.0, rate: float = 1.0) -> np.ndarray:
    return kernels.elu(floating(x, "elu_cpu"), alpha, scale, rate)


def _elu(input: Tensor, alpha: float, scale: float, rate: float) -> Tensor:
    """scale · x above 0, scale · alpha · (exp(rate · x) - 1) below."""
    positive = input > 0
    below = flambeau.where(positive, 0, input)
    return flambeau.where(positive, input * scale,
                          flambeau.expm1(below * rate) * (alpha * scale))


@activation(_elu_kernel, lambda grad, input, alpha: kernels.elu_backward(
    grad, input, alpha, 1.0, 1.0))
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha · (exp(x) - 1) below. Clevert et al., ICLR 2016."""
    if inplace:
        return written(elu, input, alpha)
    return _elu(input, alpha, 1.0, 1.0)


@fused(lambda input, *numbers: _elu_kernel(input, *[within(input, v) for v in numbers]),
       backward=lambda grad, input, alpha, scale, input_scale: kernels.elu_backward(
           grad, input, alpha, scale, input_scale),
       namespace=None, name="elu_of", node_name="EluBackward0")
def _scaled_elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0,
                input_scale: float = 1.0) -> Tensor:
    return _elu(input, alpha, scale, input_scale)


_write("elu_", _scaled_elu)
elu.op.inplace_node = _scaled_elu.op.inplace_node = "EluBackward1"
_SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@activation(lambda input: _elu_kernel(input, *_SELU),
            lambda grad, input: kernels.elu_backward(grad, input, *_SELU, 1.0), namespace=BOTH,
            write=True, node_name="EluBackward0")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled so that signals keep mean 0 and variance 1. Klambauer et al., NeurIPS 2017."""
    if inplace:
        return written(selu, input)
    return _elu(input, *_SELU, 1.0)


def _celu_kernel(x: np.ndarray, alpha: float) -> np.ndarray:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu_kernel(x, alpha, 1.0, 1 / alpha)


@activation(_celu_kernel, lambda grad, input, alpha: kernels.elu_backward(
    grad, input, alpha, 1.0, 1 / alpha), namespace=BOTH, write=True)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1)). Barron, 2017."""
    if inplace:
        return written(celu, input, alpha)
    return _elu(input, alpha, 1.0, 1 / alpha)


@fused(lambda input, weight: kernels.leaky_relu(input, weight), tensors=("input", "weight"),
       backward=lambda grad, input, weight: activations.prelu_backward(grad, input, weight),
       namespace=None, node_name="PreluKernelBackward0")
def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    return flambeau.where(input > 0, input, weight * input)


@composite(namespace=BOTH, method=True)
@refusing("bBilUcW8")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x above 0, weight · x below; `weight` has one element, or one a channel (dimension 1)."""
    shape, n = input._array.shape, weight._array.size
    if input._array.dtype != weight._array.dtype:
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           f"{type_name(input.dtype)} and {type_name(weight.dtype)}")
    if n != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if n != channels:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found "
                               f"parameter numbers = {n} and channel size = {channels}.")
    if weight._array.ndim > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{weight._array.ndim}")
    if len(shape) == 1:
        return _prelu(input, weight)
    return _prelu(input, weight.view((1, n, *(1,) * (len(shape) - 2)) if len(shape) > 1 else ()))


_rrelu_slopes = sampler("rrelu", rrelu_slopes, params=("lower", "upper"))


@composite(namespace=BOTH)
@one_node(name="RreluWithNoiseBackward0")
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False, generator: Any = None) -> Tensor:
    """`leaky_relu` with a random slope from U(lower, upper) for each element; their mean
    when not training."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    floating(input._array, "rrelu_with_noise_out_cpu")
    if input._array.dtype == np.float16:    # bfloat16 is taken
        raise no_kernel("rrelu_with_noise_out_cpu", input._array.dtype)
    slopes = sampled(_rrelu_slopes, input, generator, lower, upper)
    return input.mul_(slopes) if inplace else input * slopes


public["nn.functional"]["rrelu_"] = public["torch"]["rrelu_"] = lambda input, *args, **kwargs: \
    rrelu(input, *args, **kwargs, inplace=True)
public["nn.functional"]["relu_"] = Tensor.relu_

# ---- smooth --------------------------------------------------------------------------------------


def _gelu_kernel(x: np.ndarray, approximate: str) -> np.ndarray:
    floating(x, "GeluKernelImpl")
    if approximate == "none":
        return kernels.gelu(x)
    if approximate != "tanh":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return kernels.gelu_tanh(x)


@fused(_gelu_kernel, backward=lambda grad, input, approximate: (
    kernels.gelu_backward if approximate == "none" else kernels.gelu_tanh_backward)(grad, input),
    out=True)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x Φ(x), Φ being the standard normal distribution function. Hendrycks and Gimpel, 2016.

    `approximate="tanh"`: ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))).

    >>> import flambeau
    >>> flambeau.nn.functional.gelu(flambeau.tensor([1.0]))
    tensor([0.8413])
    """
    if approximate == "tanh":
        inner = (input + 0.044715 * input * input * input) * (2 / np.pi) ** 0.5
        return 0.5 * input * (1 + tanh(inner))
    if approximate != "none":
        raise RuntimeError("approximate argument must be either none or tanh.")
    return 0.5 * input * (1 + flambeau.erf(input * 0.5 ** 0.5))


def _silu_kernel(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return kernels.multiply(x, kernels.sigmoid(x))
    return kernels.silu(floating(x, "silu_cpu"))


def _silu_backward(grad: np.ndarray, input: np.ndarray) -> np.ndarray:
    if input.dtype.kind in "cW":
        s = kernels.sigmoid(input)
        return grad * np.conj(s * (1 + input * (1 - s)))
    return kernels.silu_backward(grad, input)


@activation(_silu_kernel, _silu_backward)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x).

    >>> import flambeau
    >>> flambeau.nn.functional.silu(flambeau.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    if inplace:
        return written(silu, input)
    return input * sigmoid(input)


@activation(lambda input: activations.mish(floating(input, "mish_cpu")),
            lambda grad, input: activations.mish_backward(grad, input))
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(log(1 + exp(x))). Misra, BMVC 2020."""
    if inplace:
        return written(mish, input)
    return input * tanh(_softplus(input))


def _softplus(input: Tensor) -> Tensor:
    return flambeau.logaddexp(input, flambeau.zeros_like(input))


@fused(lambda input, beta, threshold: kernels.softplus(
           floating(input, "softplus_cpu"), within(input, beta), within(input, threshold)),
       backward=lambda grad, input, beta, threshold: kernels.softplus_backward(
           grad, input, beta, threshold), out=True)
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta · x)) / beta; x itself where beta · x exceeds `threshold`."""
    scaled = input * beta
    return flambeau.where(scaled > threshold, input, _softplus(scaled) / beta)


@fused(lambda input: activations.logsigmoid(floating(input, "log_sigmoid_cpu")),
       backward=lambda grad, input: activations.logsigmoid_backward(grad, input),
       node_name="LogSigmoidBackward0", out=True)
def logsigmoid(input: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return -_softplus(-input)


@composite(namespace="nn.functional")
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@composite(namespace="nn.functional")
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


public["nn.functional"]["sigmoid"], public["nn.functional"]["tanh"] = sigmoid, tanh

# ---- piecewise linear ----------------------------------------------------------------------------


@activation(lambda input: kernels.hardsigmoid(floating(input, "hardsigmoid_cpu")),
            lambda grad, input: kernels.hardsigmoid_backward(grad, input))
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    if inplace:
        return written(hardsigmoid, input)
    return hardtanh(input + 3, 0, 6) / 6


@activation(lambda input: kernels.hardswish(floating(input, "hardswish_cpu")),
            lambda grad, input: kernels.hardswish_backward(grad, input))
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6. Howard et al., MobileNetV3, 2019."""
    if inplace:
        return written(hardswish, input)
    inner = flambeau.where(input < 3, input * (input + 3) / 6, input)
    return flambeau.where(input <= -3, 0, inner)


@fused(lambda input, lambd: kernels.hardshrink(
           floating(input, "hardshrink_cpu"), within(input, lambd)),
       backward=lambda grad, input, lambd: kernels.shrink_backward(grad, input, lambd),
       namespace=BOTH, method=True, out=True)
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where \\|x\\| exceeds `lambd`, else 0."""
    return flambeau.where((input >= -lambd) & (input <= lambd), 0, input)


def _softshrink_kernel(x: np.ndarray, limit: float) -> np.ndarray:
    most = finfo(from_numpy_dtype(floating(x, "softshrink_check").dtype)).max
    limit = stored(limit, np.dtype(float))
    if not 0 <= limit <= most:
        raise RuntimeError(f"lambda must be in range [0, {most:g}] for input dtype "
                           f"{type_name(from_numpy_dtype(x.dtype))}, but found {limit:g}")
    return kernels.softshrink(x, limit)


@fused(_softshrink_kernel, backward=lambda grad, input, lambd: kernels.shrink_backward(
    grad, input, lambd), out=True)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by `lambd`, but not past it."""
    moved = flambeau.where(input < 0, input + lambd, input - lambd)
    return flambeau.where((input >= -lambd) & (input <= lambd), input * 0, moved)


@fused(lambda input, dim: activations.glu(floating(input, "glu_cpu"), dim),
       backward=lambda grad, input, dim: activations.glu_backward(grad, input, dim),
       namespace=None, node_name="GluBackward0", name="_glu")
def _glu(input: Tensor, dim: int) -> Tensor:
    a, b = input.chunk(2, dim)
    return a * sigmoid(b)


@composite(namespace="nn.functional")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the halves of `input` along `dim`. Dauphin et al., 2017."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = wrap_dim(dim, len(shape))
    if shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size "
                           f"{shape[dim]}")
    return _glu(input, dim)
