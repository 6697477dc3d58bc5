"""Functions of neural networks: activations, convolutions, pooling, losses, attention, and more.

They are declared in `flambeau.ops`, a file a family; here stands what belongs to no family.
"""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau.core.op import public
from flambeau.core.tensor import Tensor
from flambeau.dispatch.python_functions import python_function
from flambeau.ops import load as _load
from flambeau.ops.linalg import grouped_products
from flambeau.ops.nn.attention import _canonical_mask as _canonical_mask
from flambeau.ops.nn.attention import _none_or_dtype as _none_or_dtype
from flambeau.overrides import has_torch_function as has_torch_function
from flambeau.overrides import has_torch_function_unary as has_torch_function_unary
from flambeau.overrides import has_torch_function_variadic as has_torch_function_variadic

NETWORK = "nn.functional"


# ---- dropout -------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _applied(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _check_probability(p)
    return getattr(flambeau, f"{name}_" if inplace else name)(input, p, training)


@python_function(namespace=NETWORK)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, zero each element with probability `p` and scale the rest by 1 / (1 - p).

    >>> import flambeau
    >>> flambeau.nn.functional.dropout(flambeau.ones(2), training=False)
    tensor([1., 1.])
    """
    return _applied("dropout", input, p, training, inplace)


@python_function(namespace=NETWORK)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                  inplace: bool = False) -> Tensor:
    """Dropout for SELU networks, which keeps mean and variance. Klambauer et al., 2017."""
    return _applied("alpha_dropout", input, p, training, inplace)


@python_function(namespace=NETWORK)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False,
                          inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels."""
    return _applied("feature_alpha_dropout", input, p, training, inplace)


@python_function(namespace=NETWORK)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (n, c, l) or (c, l)."""
    _check_probability(p)
    rank = input.dim()
    if rank not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {rank}D input. "
                           "Note that dropout1d exists to provide channel-wise dropout on inputs "
                           "with 1 spatial dimension, a channel dimension, and an optional batch "
                           "dimension (i.e. 2D or 3D inputs).")
    return _channels(input, p, training, inplace, rank == 2)


@python_function(namespace=NETWORK)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (n, c, h, w)."""
    _check_probability(p)
    rank = input.dim()
    if rank not in (3, 4):
        warnings.warn(f"dropout2d: Received a {rank}-D input to dropout2d, which is deprecated and "
                      "will result in an error in a future release. To retain the behavior and "
                      "silence this warning, please use dropout instead. Note that dropout2d "
                      "exists "
                      "to provide channel-wise dropout on inputs with 2 spatial dimensions, a "
                      "channel dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
                      stacklevel=3)
    if rank == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
                      "1D dropout behavior is desired - input is interpreted as shape (N, C, L), "
                      "where C is the channel dim. This behavior will change in a future release "
                      "to interpret the input as one without a batch dimension, i.e. shape (C, H, "
                      "W). To maintain the 1D channel-wise dropout behavior, please switch to "
                      "using dropout1d instead.", stacklevel=3)
    return _channels(input, p, training, inplace, False)


@python_function(namespace=NETWORK)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True,
              inplace: bool = False) -> Tensor:
    """Dropout of whole channels of (n, c, d, h, w) or (c, d, h, w)."""
    _check_probability(p)
    rank = input.dim()
    if rank not in (4, 5):
        warnings.warn(f"dropout3d: Received a {rank}-D input to dropout3d, which is deprecated and "
                      "will result in an error in a future release. To retain the behavior and "
                      "silence this warning, please use dropout instead. Note that dropout3d "
                      "exists "
                      "to provide channel-wise dropout on inputs with 3 spatial dimensions, a "
                      "channel dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
                      stacklevel=3)
    return _channels(input, p, training, inplace, rank != 5)


def _channels(input: Tensor, p: float, training: bool, inplace: bool, unbatched: bool) -> Tensor:
    if inplace and unbatched:
        flambeau.feature_dropout_(input.unsqueeze_(0), p, training)
        return input.squeeze_(0)
    whole = input.unsqueeze(0) if unbatched else input
    drop = flambeau.feature_dropout_ if inplace else flambeau.feature_dropout
    result = drop(whole, p, training)
    return result.squeeze(0) if unbatched else result


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise unless `arg` is a number or a pair of numbers."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def __getattr__(name: str) -> Any:
    """What layers written elsewhere take besides the functions, and those that came late."""
    if name == "grad":
        from flambeau.nn import grad
        return grad
    from flambeau import _jit_internal
    from flambeau.nn import _functional_parts
    for place in (_functional_parts, _jit_internal):
        if name in place.__dict__:
            return getattr(place, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


ScalingType, SwizzleType = grouped_products.ScalingType, grouped_products.SwizzleType

_load()
globals().update({name: function for name, function in public[NETWORK].items()
                  if not name.startswith("_")})
__all__ = sorted([*public[NETWORK], "ScalingType", "SwizzleType", "has_torch_function",
                  "has_torch_function_unary", "has_torch_function_variadic"])
