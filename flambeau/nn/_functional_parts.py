"""Parts of `nn.functional` that layers written outside of it are made of: how attention projects
its inputs and checks its masks, how pooling finds sizes, how old arguments are read."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.dispatch.by_flag import boolean_dispatched
from flambeau.nn import functional as F
from flambeau.ops.nn.attention import _is_batched, _project
from flambeau.ops.nn.softmax import implicit_dim

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

_max_pool1d, _max_pool2d, _max_pool3d, _adaptive_max_pool1d, _adaptive_max_pool2d, \
    _adaptive_max_pool3d, _fractional_max_pool2d, _fractional_max_pool3d = (
        boolean_dispatched[pool]["if_false"] for pool in (
            F.max_pool1d, F.max_pool2d, F.max_pool3d, F.adaptive_max_pool1d, F.adaptive_max_pool2d,
            F.adaptive_max_pool3d, F.fractional_max_pool2d, F.fractional_max_pool3d))
_threshold = F.threshold
_get_softmax_dim = implicit_dim


# ---- attention -----------------------------------------------------------------------------------


def _mha_shape_check(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
                     attn_mask: Tensor | None, num_heads: int) -> bool:
    """Do the arguments of attention come with a batch? Raise if their ranks do not fit.

    >>> _mha_shape_check(*[flambeau.ones(2, 4)] * 3, None, None, 2)
    False
    """
    return _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    """Raise unless the mask is as large as the batch and its keys."""
    for dim, expected in enumerate((bsz, src_len)):
        if key_padding_mask.shape[dim] != expected:
            raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
                                 f"{key_padding_mask.shape[dim]}")


def _in_projection_packed(q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Tensor | None = None
                          ) -> Sequence[Tensor]:
    """Query, key and value through their own maps, whose weights stand one above the other."""
    return _project(q, k, v, w, b, None)


def _in_projection(q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor,
                   b_q: Tensor | None = None, b_k: Tensor | None = None, b_v: Tensor | None = None
                   ) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through their own maps, each to the width of the query."""
    width = q.size(-1)
    triples = (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v))
    for name, x, weight, _ in triples:
        _expect(f"{name} weights", (width, x.size(-1)), weight.shape)
    for name, _, _, bias in triples:
        if bias is not None:
            _expect(f"{name} bias", (width,), bias.shape)
    return tuple([F.linear(x, weight, bias)                 # type: ignore[return-value]
                  for _, x, weight, bias in triples])


def _expect(what: str, expected: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if tuple(shape) != expected:
        raise AssertionError(f"expecting {what} shape of {expected}, but got {shape}")


# ---- normalisation and pooling -------------------------------------------------------------------


def _verify_batch_size(size: Sequence[int]) -> None:
    """Raise if each channel has one value only, whose variance says nothing."""
    if size[0] * prod(size[2:]) == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"{size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    """Raise if each channel of a sample has one value only."""
    if prod(size[2:]) == 1:
        raise ValueError("Expected more than 1 spatial element when training, got input size "
                         f"{size}")


def _unpool_output_size(input: Tensor, kernel_size: Sequence[int], stride: Sequence[int],
                        padding: Sequence[int], output_size: Sequence[int] | None) -> list[int]:
    """The size that was pooled: as given, if it can have been, else the one without remainder.

    >>> _unpool_output_size(flambeau.ones(1, 1, 4), [2], [2], [0], None)
    [8]
    """
    rank = len(kernel_size)
    default = [(size - 1) * stride[d] + kernel_size[d] - 2 * padding[d]
               for d, size in enumerate(input.shape[-rank:])]
    if output_size is None:
        return default
    sizes = list(output_size)
    if len(sizes) == rank + 2:
        sizes = sizes[2:]
    if len(sizes) != rank:
        raise ValueError(f"output_size should be a sequence containing {rank} or {rank + 2} "
                         f"elements, but it has a length of '{len(sizes)}'")
    for d, size in enumerate(sizes):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < size < high:
            raise ValueError(f'invalid output_size "{sizes}" (dim {d} must be between {low} and '
                             f'{high})')
    return sizes


def _no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float
                               ) -> None:
    """Scale the rows that `input` names down to `max_norm`, in place and outside the graph."""
    with flambeau.no_grad():
        flambeau.embedding_renorm_(weight, input, max_norm, norm_type)


# ---- arguments -----------------------------------------------------------------------------------


def _is_integer(x: Any) -> bool:
    """Is this an integer, or a tensor of integers?"""
    if isinstance(x, (int, flambeau.SymInt)):
        return True
    return isinstance(x, Tensor) and not x.is_floating_point() and not x.is_complex()


def _list_or_empty(l: list[Any] | None) -> list[Any]:
    """The list, an empty one for None."""
    return [] if l is None else l


def _expand_single_value(v: Any) -> list[Any]:
    """A list as it is; else a list of the value, an empty one for None."""
    if v is None:
        return []
    return v if isinstance(v, list) else [v]


def _enum_list_as_int_list(l: Any) -> list[int]:
    """The numbers of one or several members of an enumeration."""
    return [member.value for member in _expand_single_value(l)]
