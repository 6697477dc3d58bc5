"""Dropout: random zeros, and what keeps the moments of the rest.

All are products with a mask that is drawn for the shape of the input, or of its channels.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from flambeau.core.dtypes import FLOATING, from_numpy_dtype
from flambeau.core.modes import shows_ops
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor, wrap
from flambeau.dispatch.declaration import op
from flambeau.kernels.creation import random as kernels
from flambeau.kernels.refused import no_kernel
from flambeau.ops.factory.create import empty_like
from flambeau.ops.node_names import one_node
from flambeau.ops.pointwise.arithmetic import mul
from flambeau.ops.random.fills import bernoulli_fill, draw_like, is_common, stream_of
from flambeau.ops.view.conversion import clone

SATURATION = 1.7580993408473766        # minus the value that SELU tends to at minus infinity


def check_probability(p: float, name: str = "dropout") -> None:
    """Raise unless `p` is a probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"{name} probability has to be between 0 and 1, but got {p:g}")


def channels(input: Tensor) -> tuple[int, ...]:
    """The shape of a mask that drops whole channels: the first two dimensions, then ones."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*shape[:2], *(1,) * (len(shape) - 2))


def dropout_mask(input: Tensor, p: float, feature: bool = False, generator: Any = None) -> Tensor:
    """What dropout multiplies `input` by: zeros with probability `p`, elsewhere 1 / (1 - p).

    With `feature`, one number for each channel.
    """
    target, stream = input._array.dtype, stream_of(generator, "dropout")
    if not is_common(target):
        raise no_kernel("bernoulli_scalar_cpu_", target)
    shape, like = _shape_of_mask(input, feature)
    return draw_like(shape, target, lambda array: kernels.dropout_mask(stream, array, float(p)),
                     input._device, like)


def _shape_of_mask(input: Tensor, feature: bool) -> tuple[tuple[int, ...], Any]:
    return (channels(input), None) if feature else (input._array.shape, input._array)


def _keep_mask(input: Tensor, p: float, feature: bool) -> Tensor:
    """Ones with the probability 1 - p, elsewhere zeros."""
    shape, like = _shape_of_mask(input, feature)
    if shows_ops():
        empty = input.new_empty(shape) if feature else empty_like(input)
        return empty.bernoulli_(1 - p)
    target = input._array.dtype
    return draw_like(shape, target, bernoulli_fill(target, 1 - p, None), input._device, like)


def _zero(input: Tensor) -> Tensor:
    return wrap(np.zeros((), input._array.dtype))


def _check_type(array_type: np.dtype) -> None:
    if array_type not in FLOATING:
        raise RuntimeError("result type Float can't be cast to the desired output type "
                           f"{type_name(from_numpy_dtype(array_type))}")


def _drop(input: Tensor, p: float, train: bool, feature: bool, alpha: bool, mul: Any) -> Tensor:
    check_probability(p)
    if not train or p == 0 or not input._array.size:
        return input
    if p == 1:
        return mul(input, _zero(input))
    if not alpha:
        mask = _keep_mask(input, p, feature).div_(1 - p) if shows_ops() \
            else dropout_mask(input, p, feature)
        _check_type(input._array.dtype)             # as PyTorch does, after it has drawn
        return mul(input, mask)
    kept = _keep_mask(input, p, feature)
    _check_type(np.dtype(np.int64) if input._array.dtype.kind == "b" else input._array.dtype)
    scale = 1 / math.sqrt((SATURATION**2 * p + 1) * (1 - p))
    shift = SATURATION * scale
    offset = kept.add(-1).mul_(shift).add_(shift * p)
    return mul(input, kept.mul_(scale)).add_(offset)


def _declare(name: str, feature: bool, alpha: bool, doc: str) -> tuple[Any, Any]:
    """A kind of dropout, and the same in place."""
    def body(input: Tensor, p: float, train: bool) -> Tensor:
        return _drop(input, p, train, feature, alpha, mul)

    def body_in_place(self: Tensor, p: float, train: bool) -> Tensor:
        return _drop(self, p, train, feature, alpha, Tensor.mul_)

    how: dict[str, Any] = {"out": False, "method": False}
    return (op(f"{name}(Tensor input, float p, bool train) -> Tensor", body=body, aten_calls=body,
               doc=doc, **how),
            op(f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", body=body_in_place,
               aten_calls=body_in_place, doc=f"`{name}` in place.", **how))


dropout, dropout_ = _declare("dropout", False, False, """In training, zero each element with
    probability `p` and scale the rest by 1 / (1 - p).

    >>> import flambeau
    >>> flambeau.dropout(flambeau.ones(3), 0.5, train=False)
    tensor([1., 1., 1.])
    """)
feature_dropout, feature_dropout_ = _declare(
    "feature_dropout", True, False,
    "Dropout of whole channels: of all elements with the same first two indices.")
alpha_dropout, alpha_dropout_ = _declare("alpha_dropout", False, True, """Dropout for SELU networks:
    what is dropped saturates, and mean and variance are kept.

    Klambauer et al., Self-normalizing neural networks, NeurIPS 2017.
    """)
feature_alpha_dropout, feature_alpha_dropout_ = _declare(
    "feature_alpha_dropout", True, True, "`alpha_dropout` of whole channels.")


@op("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", out=False,
    method=False)
@one_node
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout and its mask: which elements were kept."""
    check_probability(p)
    boolean = np.dtype(np.bool_)
    if train is False or not input._array.size:
        kept = draw_like(input._array.shape, boolean, lambda array: array.fill(True), input._device)
        return clone(input), kept
    kept = draw_like(input._array.shape, boolean, bernoulli_fill(boolean, 1 - p, None),
                     input._device)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    product = mul(input, kept)
    _check_type(product._array.dtype)
    return mul(product, scale), kept



@op("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    function=False, method=False, out=False)
@one_node
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of `native_dropout`, of its mask and 1 / (1 - p)."""
    return mul(mul(grad_output, mask), scale)
