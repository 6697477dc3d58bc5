r"""Filling weights with first values, in place and outside the graph.

With :math:`n_{in}` inputs and :math:`n_{out}` outputs per unit ("fan in" and "fan out"), Xavier's
rules keep the variance of activations and gradients with :math:`2/(n_{in}+n_{out})`, Kaiming's
with :math:`gain^2/n`.
"""

from __future__ import annotations

import math
import warnings

import flambeau
from flambeau import Tensor
from flambeau.core.calling.overrides import has_torch_function
from flambeau.overrides import handle_torch_function

__all__ = ["calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_",
           "kaiming_normal", "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal",
           "normal_", "ones_", "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_",
           "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
           "xavier_uniform_", "zeros_"]

_LINEAR = frozenset({"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                     "conv_transpose3d", "sigmoid"})


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    r"""The factor by which weights make up for what `nonlinearity` takes from the variance.

    1 for linear maps and sigmoid, 5/3 for tanh, :math:`\sqrt 2` for relu,
    :math:`\sqrt{2/(1+a^2)}` for leaky_relu of slope `param` (0.01), 3/4 for selu.

    Example:
        >>> nn.init.calculate_gain("leaky_relu", 0.2)
        1.3867504905630728
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4  # found by experiment; the theory gives 1
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


# ------------------------------------------------------------------ plain distributions

def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator=None) -> Tensor:
    """Fill with draws from U(a, b)."""
    if has_torch_function((tensor,)):
        return handle_torch_function(uniform_, (tensor,), tensor=tensor,
                                     a=a, b=b, generator=generator)
    with flambeau.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator=None) -> Tensor:
    """Fill with draws from N(mean, std²)."""
    if has_torch_function((tensor,)):
        return handle_torch_function(normal_, (tensor,), tensor=tensor,
                                     mean=mean, std=std, generator=generator)
    with flambeau.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _normal_cdf(x):
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0,
                  b: float = 2.0, generator=None) -> Tensor:
    """Fill with draws from N(mean, std²) restricted to [a, b].

    By rejection: draws from the normal distribution where enough of them fall into the interval,
    else uniform draws that are accepted in proportion to the density. Every round draws for all
    elements and keeps what was still missing.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.", stacklevel=2)
    inside = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    draw = _draw_normal if inside >= 0.3 else _draw_by_density
    with flambeau.no_grad():
        missing = flambeau.ones_like(tensor, dtype=flambeau.bool)
        while missing.any():
            values, accepted = draw(flambeau.empty_like(tensor), mean, std, a, b, generator)
            accepted &= missing
            tensor.copy_(flambeau.where(accepted, values, tensor))
            missing &= ~accepted
        return tensor.clamp_(min=a, max=b)


def _draw_normal(values, mean, std, a, b, generator):
    values.normal_(mean, std, generator=generator)
    return values, (values >= a) & (values <= b)


def _draw_by_density(values, mean, std, a, b, generator):
    values.uniform_(a, b, generator=generator)
    peak = min(max(mean, a), b)  # where the density is highest in [a, b]
    log_density = ((peak - mean) ** 2 - (values - mean) ** 2) / (2 * std**2)
    threshold = flambeau.empty_like(values).uniform_(generator=generator)
    return values, threshold <= log_density.exp()


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    if has_torch_function((tensor,)):
        return handle_torch_function(constant_, (tensor,), tensor=tensor, val=val)
    with flambeau.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    with flambeau.no_grad():
        return tensor.zero_()


# ------------------------------------------------------------------ identities

def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity: a linear layer that passes its inputs on.

    Example:
        >>> nn.init.eye_(flambeau.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with flambeau.no_grad():
        return tensor.copy_(flambeau.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution's weight with the identity: one 1 in the middle of a kernel, for as many
    channels of each group as there are."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with flambeau.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


# ------------------------------------------------------------------ by the number of connections

def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    shape = tensor.shape
    receptive_field = math.prod(shape[2:])
    return shape[1] * receptive_field, shape[0] * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    modes = ["fan_in", "fan_out"]
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def _xavier_std(tensor, gain):
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    r"""Fill from :math:`U(-k, k)` with :math:`k = gain \sqrt{6/(n_{in}+n_{out})}`.

    Glorot and Bengio, Understanding the difficulty of training deep feedforward neural networks,
    AISTATS 2010.
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator=None) -> Tensor:
    r"""Fill from a normal distribution of variance :math:`2\,gain^2/(n_{in}+n_{out})`."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """The standard deviation gain/√fan, or None where there is nothing to fill."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                     nonlinearity: str = "leaky_relu", generator=None) -> Tensor:
    r"""Fill from :math:`U(-k, k)` with :math:`k = gain \sqrt{3/n}`, n being the fan of `mode`.

    `a` is the negative slope that the gain of a leaky_relu depends on. He et al., Delving deep into
    rectifiers, ICCV 2015.
    """
    if has_torch_function((tensor,)):
        return handle_torch_function(kaiming_uniform_, (tensor,), tensor=tensor,
                                     a=a, mode=mode, nonlinearity=nonlinearity, generator=generator)
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in",
                    nonlinearity: str = "leaky_relu", generator=None) -> Tensor:
    r"""Fill from a normal distribution of variance :math:`gain^2/n`, n being the fan of `mode`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator=None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix times `gain`; dimensions after the first count as one.

    The matrix is the Q of a normal matrix, with signs chosen so that R has a positive diagonal,
    which makes it uniform over the orthogonal group. Saxe, McClelland and Ganguli, 2013.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    with flambeau.no_grad():
        matrix = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        if rows < columns:
            matrix = matrix.t()
        q, r = flambeau.linalg.qr(matrix)
        q = q * flambeau.diag(r, 0).sign()
        if rows < columns:
            q = q.t()
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator=None) -> Tensor:
    """Fill a matrix from N(0, std²) and set the share `sparsity` of each column to zero.

    Martens, Deep learning via Hessian-free optimization, ICML 2010.
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with flambeau.no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[flambeau.randperm(rows)[:zeros], column] = 0
    return tensor


# ------------------------------------------------------------------ the names without underscore

def _make_deprecate(fill):
    old_name = fill.__name__[:-1]

    def deprecated(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{fill.__name__}`.",
            FutureWarning, stacklevel=2)
        return fill(*args, **kwargs)

    deprecated.__doc__ = f"The old name of `{fill.__name__}`."
    deprecated.__name__ = deprecated.__qualname__ = old_name
    return deprecated


# The fills without their checks, as code that extends these functions calls them.
_no_grad_uniform_, _no_grad_normal_ = uniform_, normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
_no_grad_trunc_normal_ = trunc_normal_


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
