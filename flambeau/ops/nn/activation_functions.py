"""The activation functions of `nn.functional`. Most can write into their input: `inplace=True`."""
from __future__ import annotations

import flambeau
from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.python_functions import python_function
from flambeau.ops.nn import activation
from flambeau.ops.nn.rrelu import rrelu as _rrelu
from flambeau.ops.pointwise import elementary

NETWORK = "nn.functional"
_inner, _functional = public["_nn"], public.setdefault(NETWORK, {})
_elu_, _hardtanh_, _relu6_ = _inner["elu_"], _inner["hardtanh_"], _inner["relu6_"]
_leaky_relu_, _silu_, _mish_ = _inner["leaky_relu_"], _inner["silu_"], _inner["mish_"]
_hardsigmoid_, _hardswish_ = _inner["hardsigmoid_"], _inner["hardswish_"]
_celu_, _selu_, _rrelu_, _threshold_ = [
    public["torch"][name] for name in ("celu_", "selu_", "rrelu_", "threshold_")]


@python_function(namespace=NETWORK)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x).

    >>> import flambeau
    >>> flambeau.nn.functional.relu(flambeau.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return (flambeau.relu_ if inplace else flambeau.relu)(input)


@python_function(namespace=NETWORK)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0,
             inplace: bool = False) -> Tensor:
    """x cut off at `min_val` and `max_val`, where the slope is 0.

    >>> import flambeau
    >>> flambeau.nn.functional.hardtanh(flambeau.tensor([-2.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (_hardtanh_ if inplace else activation.hardtanh)(input, min_val, max_val)


@python_function(namespace=NETWORK)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return (_relu6_ if inplace else activation.relu6)(input)


@python_function(namespace=NETWORK)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope · x below."""
    return (_leaky_relu_ if inplace else activation.leaky_relu)(input, negative_slope)


@python_function(namespace=NETWORK, private="_threshold")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where it exceeds `threshold`, else `value`."""
    return (_threshold_ if inplace else activation.threshold)(input, threshold, value)


@python_function(namespace=NETWORK)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha · (exp(x) - 1) below. Clevert et al., ICLR 2016."""
    return (_elu_ if inplace else activation.elu)(input, alpha)


@python_function(namespace=NETWORK)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` scaled so that signals keep mean 0 and variance 1. Klambauer et al., NeurIPS 2017."""
    return (_selu_ if inplace else activation.selu)(input)


@python_function(namespace=NETWORK)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1)). Barron, 2017."""
    return (_celu_ if inplace else activation.celu)(input, alpha)


@python_function(namespace=NETWORK)
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          inplace: bool = False) -> Tensor:
    """`leaky_relu` with a random slope from U(lower, upper) for each element; their mean
    when not training."""
    return (_rrelu_ if inplace else _rrelu)(input, lower, upper, training)


@python_function(namespace=NETWORK)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x).

    >>> import flambeau
    >>> flambeau.nn.functional.silu(flambeau.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    """
    return (_silu_ if inplace else activation.silu)(input)


@python_function(namespace=NETWORK)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(log(1 + exp(x))). Misra, BMVC 2020."""
    return (_mish_ if inplace else activation.mish)(input)


@python_function(namespace=NETWORK)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x + 3, 0), 6) / 6."""
    return (_hardsigmoid_ if inplace else activation.hardsigmoid)(input)


@python_function(namespace=NETWORK)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6. Howard et al., MobileNetV3, 2019."""
    return (_hardswish_ if inplace else activation.hardswish)(input)


@python_function(namespace=NETWORK)
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the halves of `input` along `dim`. Dauphin et al., 2017."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return activation.glu(input, dim)


@python_function(namespace=NETWORK)
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@python_function(namespace=NETWORK)
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


@python_function(namespace=NETWORK, of=elementary.sigmoid)
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


@python_function(namespace=NETWORK, of=elementary.tanh)
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


_functional |= {
    "relu_": public["torch"]["relu_"], "logsigmoid": activation.log_sigmoid,
    "hardshrink": activation.hardshrink, "prelu": activation.prelu,
    **{name: _inner[name] for name in ("gelu", "softplus", "softshrink", "elu_", "hardtanh_",
                                       "leaky_relu_")},
    **{name: public["torch"][name] for name in ("celu_", "selu_", "rrelu_", "threshold_")}}
