"""Causal masks for attention between sequences of different lengths."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.calling.overrides import disabled_torch_function

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask that is not square begins or ends."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A boolean causal mask (queries, keys), True where a query may attend."""

    __torch_function__ = disabled_torch_function

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise TypeError(f"variant must be CausalVariant, got {type(variant)}")
        offset = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = flambeau.ones(seq_len_q, seq_len_kv, dtype=flambeau.bool).tril(diagonal=offset)
        bias: Any = Tensor._make_subclass(cls, mask)
        bias.variant = variant
        bias.seq_len_q = seq_len_q
        bias.seq_len_kv = seq_len_kv
        return bias

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when "
                "seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device=None) -> Tensor:
        return self.detach().as_subclass(Tensor).clone()


def _sizes(name, size):
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size


def causal_upper_left(*size) -> CausalBias:
    """A mask whose diagonal begins in the upper left corner.

    Example:
        >>> nn.attention.bias.causal_upper_left(2, 3)._materialize()
        tensor([[ True, False, False],
                [ True,  True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes("causal_upper_left", size))


def causal_lower_right(*size) -> CausalBias:
    """A mask whose diagonal ends in the lower right corner.

    Example:
        >>> nn.attention.bias.causal_lower_right(2, 3)._materialize()
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes("causal_lower_right", size))
