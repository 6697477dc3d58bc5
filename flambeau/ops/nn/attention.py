"""Attention: softmax(Q Kᵀ / √d) V, and the layer that does it in several subspaces at once."""
from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import flambeau
from flambeau.core.modes import interceptors
from flambeau.core.op import public
from flambeau.core.promotion import c_name, is_half, type_name
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.dispatch.parts import CompositeBackward
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.network import attention as kernels
from flambeau.ops.nn.softmax import _safe_softmax, softmax
from flambeau.ops.node_names import one_node, times
from flambeau.ops.view.conversion import cast
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.shape import batch_first

NETWORK = "nn.functional"
_INNER: dict[str, Any] = {"function": False, "method": False, "out": False}


def additive_mask(mask: Tensor | None, query: Tensor, key: Tensor, is_causal: bool) -> Any:
    """The mask as numbers to be added to the scores."""
    if mask is not None and mask._array.dtype == np.bool_:
        zeros = flambeau.zeros_like(mask, dtype=query.dtype)
        mask = flambeau.where(mask, zeros, -math.inf)
    if is_causal:
        shape = (query._array.shape[-2], key._array.shape[-2])
        later = flambeau.full(shape, -math.inf, dtype=query.dtype, device=query.device).triu(1)
        mask = later if mask is None else mask + later
    return mask


def _attend_kernel(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: Any,
                   is_causal: bool, scale: Any) -> Any:
    result, total = kernels.scaled_dot_product_attention(query, key, value, mask, is_causal, scale)
    if query.ndim == 4 and query.strides[-1] == query.itemsize and result.shape == query.shape \
            and not query.flags.c_contiguous:
        own = np.empty_like(query)              # dimensions lie as those of the query
        own[...] = result
        return own, total
    return result, total


_attend = op(
    "_attend(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float? scale) "
    "-> (Tensor result, Tensor total)", kernel=_attend_kernel,
    parts=lambda *canonical: _attend_parts(*canonical), implicit=True,
    backward=lambda grad, query, key, value, mask, result, total, is_causal, scale: (
        *kernels.attention_gradients(
            grad, query, key, value, result, total, mask, is_causal, scale), None),
    nondiff="mask", differentiable=(True, False), returns=tuple,
    node="ScaledDotProductFlashAttentionForCpuBackward0", **_INNER)


def _attend_parts(query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool,
                  scale: Any, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """`attend_with_weights`, which is rounded at the end alone."""
    own = query._array.dtype
    if not is_half(own):
        return attend_with_weights(query, key, value, mask, is_causal, scale, dropout)
    query, key, value, mask = [
        cast(t, np.float32) if t is not None and t._array.dtype == own else t
        for t in (query, key, value, mask)]
    result, total = attend_with_weights(query, key, value, mask, is_causal, scale, dropout)
    return cast(result, own), total


def _can_use_kernels(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> bool:
    """Can the kernels run: equal leading dimensions, real numbers, no gradient for the mask?"""
    q = query._array
    return (q.shape[:-2] == key._array.shape[:-2] == value._array.shape[:-2]
            and q.dtype.kind in "fV" and (mask is None or mask._edge is None))


def attend_with_weights(query: Tensor, key: Tensor, value: Tensor, mask: Any, is_causal: bool,
                        scale: float | None, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """The result of attention, and its weights."""
    weights = _safe_softmax(_scores(query, key, mask, is_causal, scale), -1)
    if dropout:
        weights = flambeau.dropout(weights, dropout, True)
    return weights @ value, weights


def _scores(query: Tensor, key: Tensor, mask: Any, is_causal: bool, scale: float | None) -> Tensor:
    mask = additive_mask(mask, query, key, is_causal)
    factor = 1 / math.sqrt(query._array.shape[-1]) if scale is None else scale
    # The root of the factor goes into each side, for the sake of half floats.
    root = math.sqrt(abs(factor))
    scores = times(query, math.copysign(root, factor)) @ times(key.transpose(-2, -1), root)
    return scores if mask is None else scores + mask


# ---- four dimensions: one op, as in PyTorch ------------------------------------------------------


def _flash_parts(query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout: float,
                 is_causal: bool, scale: float | None) -> tuple[Tensor, Tensor]:
    scores = _scores(query, key, mask, is_causal, scale)
    weights = _safe_softmax(scores, -1)
    if dropout:
        weights = flambeau.dropout(weights, dropout, True)
    return weights @ value, scores.detach().logsumexp(-1)


def _flash_gradients_parts(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor,
                           logsumexp: Tensor, mask: Any, dropout: float, is_causal: bool,
                           scale: float | None) -> tuple[Any, ...]:
    if query.is_meta:                           # there is no graph to go through, only geometry
        return tuple([flambeau.empty_like(x) for x in (query, key, value)])
    through = CompositeBackward(_flash_parts, ("query", "key", "value", "attn_mask"), ())
    found = through([grad, None], [True, True, True, False], query, key, value, mask, dropout,
                    is_causal, scale)
    return tuple(found[:3])


_FLASH = "_scaled_dot_product_flash_attention_for_cpu"
_CHOICES = "*, Tensor? attn_mask=None, float? scale=None"

def _flash_gradients_batched(size: int, dims: Any, *given: Any) -> Any:
    *tensors, mask, dropout, is_causal, scale = given
    if dropout or dims[6] is not None or (mask is not None and mask._array.ndim > 2):
        return NotImplemented
    folded = [_fold_dim(t, d, size) for t, d in zip(tensors, dims)]
    found = _flash_backward(*folded, 0.0, is_causal, attn_mask=mask, scale=scale)
    return [_unfold_dim(f, size) for f in found], [0, 0, 0]


_flash_backward = op(
    f"{_FLASH}_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    f"Tensor logsumexp, float dropout_p, bool is_causal, {_CHOICES}) -> "
    "(Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    kernel=lambda grad, query, key, value, out, total, mask, dropout, is_causal, scale:
    kernels.attention_gradients(grad, query, key, value, out, total, mask, is_causal, scale),
    parts=_flash_gradients_parts, batch=_flash_gradients_batched, returns=tuple,
    nondiff="out logsumexp attn_mask", **_INNER)


def _flash_vjp(grad: Any, needs: Any, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any,
               dropout_p: float, is_causal: bool, scale: float | None, result0: Tensor,
               result1: Tensor) -> Any:
    return (*_flash_backward(grad[0], query, key, value, result0, result1, dropout_p, is_causal,
                             **{name: given for name, given in (("attn_mask", attn_mask),
                                                                ("scale", scale))
                                if given is not None}), None)


def _flash_batched(size: int, dims: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any,
                   dropout: float, is_causal: bool, scale: float | None) -> Any:
    """Slices and batch as one."""
    if dropout or dims[3] is not None or (mask is not None and mask._array.ndim > 2):
        return NotImplemented
    folded = [_fold_dim(t, d, size) for t, d in zip((query, key, value), dims)]
    found = _flash(*folded, 0.0, is_causal, attn_mask=mask, scale=scale)
    return [_unfold_dim(f, size) for f in found], [0, 0]


def _fold_dim(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    front = batch_first(tensor, dim, size)
    shape = front._array.shape
    return reshape(front, (size * shape[1], *shape[2:]))


def _unfold_dim(tensor: Tensor, size: int) -> Tensor:
    shape = tensor._array.shape
    return reshape(tensor, (size, shape[0] // max(size, 1), *shape[1:]))


_flash = op(
    f"{_FLASH}(Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, "
    f"{_CHOICES}) -> (Tensor output, Tensor logsumexp)",
    kernel=lambda query, key, value, mask, dropout, is_causal, scale: _attend_kernel(
        query, key, value, mask, is_causal, scale),
    parts=_flash_parts, vjp=_flash_vjp, nondiff="attn_mask", differentiable=(True, False),
    batch=_flash_batched,
    returns=tuple, out=False, method=False)


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    q, k, v = query._array, key._array, value._array
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional, but "
                           f"got query.dim: {q.ndim} key.dim: {k.ndim} and value.dim: {v.ndim} "
                           "instead.")
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError("Expected query, key, and value to have the same dtype, but got "
                           f"query.dtype: {c_name(query.dtype)} key.dtype: {c_name(key.dtype)} and "
                           f"value.dtype: {c_name(value.dtype)} instead.")
    if q.dtype.kind in "bui":
        raise RuntimeError(f"expected scalar type Float but found {type_name(query.dtype)}")
    if 0 not in (q.size, k.size):
        _check_product(q.shape, k.shape[:-2] + k.shape[:-3:-1])
        _check_product((*q.shape[:-1], k.shape[-2]), v.shape)
    if mask is not None and mask._array.dtype not in (np.bool_, np.float32, q.dtype):
        raise RuntimeError("Expected attn_mask dtype to be bool or float or to match query dtype, "
                           f"but got attn_mask.dtype: {c_name(mask.dtype)} and  query.dtype: "
                           f"{c_name(query.dtype)} instead.")


def _check_product(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    if a[-1] == b[-2]:
        return
    if len(a) == len(b) == 2:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and "
                           f"{b[0]}x{b[1]})")
    lead = math.prod(a[:-2])
    raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                       f"[{lead}, {a[-1]}] but got: [{lead}, {b[-2]}].")


def repeat_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Heads of key and value repeated for the groups of the query's heads that share them."""
    heads = query._array.shape[-3]
    repeated = []
    for tensor in (key, value):
        own = tensor._array.shape[-3]
        if own == 0 or heads % own:
            raise RuntimeError("Number of heads in key and value must divide the number of heads "
                               "in query")
        repeated.append(tensor if own == heads else tensor.repeat_interleave(heads // own, -3))
    return repeated[0], repeated[1]


@op("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> "
    "Tensor", namespace=NETWORK, out=False, method=False, autocast="lower")
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor,
                                 attn_mask: Tensor | None, dropout_p: float, is_causal: bool,
                                 scale: float | None, enable_gqa: bool) -> Tensor:
    """softmax(scale · Q Kᵀ + mask) V with scale = 1/√d: (..., l, d), (..., s, d), (..., s, e) give
    (..., l, e).

    A boolean `attn_mask` says what takes part, another is added to the scores; `is_causal` lets
    each query see no later key. `enable_gqa`: several heads of the query share one of key and
    value.
    Vaswani et al., Attention is all you need, NeurIPS 2017.

    >>> import flambeau
    >>> q = flambeau.zeros(1, 1, 2, 4)
    >>> v = flambeau.tensor([[[[1.0], [3.0]]]])
    >>> flambeau.nn.functional.scaled_dot_product_attention(q, q, v, is_causal=True).flatten()
    tensor([1., 2.])
    """
    _check(query, key, value, attn_mask)
    if attn_mask is not None and is_causal and (dropout_p or query._array.ndim != 4):
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set "
                           "when is_causal=True")
    if enable_gqa and query._array.ndim >= 3:
        return _attend_in_groups(query, key, value, attn_mask, dropout_p, is_causal, scale)
    if dropout_p or query._array.dtype.kind in "cW":
        return _attend_parts(query, key, value, attn_mask, is_causal, scale, dropout_p)[0]
    lead = query._array.shape[:-2]
    if not lead == key._array.shape[:-2] == value._array.shape[:-2]:
        lead = broadcast_shapes(lead, key._array.shape[:-2], value._array.shape[:-2])
        query, key, value = [t.expand(*lead, *t._array.shape[-2:]) for t in (query, key, value)]
    if attn_mask is not None:
        _check_mask(attn_mask, query, key)
    if query._array.ndim == 4 and _can_use_kernels(query, key, value, attn_mask):
        return _flash(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]
    attend = _attend if not interceptors and _can_use_kernels(query, key, value, attn_mask) \
        else _attend_parts
    return attend(query, key, value, attn_mask, is_causal, scale)[0]


@one_node(name="ScaledDotProductFlashAttentionForCpuBackward0", inputs="query key value")
def _attend_in_groups(query: Tensor, key: Tensor, value: Tensor, mask: Any, dropout: float,
                      is_causal: bool, scale: float | None) -> Tensor:
    return scaled_dot_product_attention(query, *repeat_heads(query, key, value), mask, dropout,
                                        is_causal, scale=scale)


def _check_mask(mask: Tensor, query: Tensor, key: Tensor) -> None:
    scores = (*query._array.shape[:-1], key._array.shape[-2])
    if broadcast_shapes(scores, mask._array.shape) != scores:
        raise RuntimeError(f"attn_mask of size {list(mask._array.shape)} does not broadcast to the "
                           f"scores' size {list(scores)}")


# ---- several heads -------------------------------------------------------------------------------


def _project(query: Tensor, key: Tensor, value: Tensor, weight: Any, bias: Any,
             separate: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value through their own maps, whose weights stand one above the other."""
    linear = public[NETWORK]["linear"]
    width = query._array.shape[-1]
    if separate is None:
        if query is key and key is value:
            return _split_joined(linear(query, weight, bias), 3)
        if key is value:
            first, rest = weight.split([width, 2 * width])
            biases = (None, None) if bias is None else bias.split([width, 2 * width])
            k, v = _split_joined(linear(key, rest, biases[1]), 2)
            return linear(query, first, biases[0]), k, v
        separate = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple([linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases)])


def _split_joined(joined: Tensor, n: int) -> Any:
    """The `n` parts that lie side by side in the last dimension, each in memory of its own."""
    apart = joined.unflatten(-1, (n, -1)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
    return [apart[i] for i in range(n)]


def _is_batched(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any,
                heads: int) -> bool:
    """Do the arguments come with a batch? Raise if their ranks do not fit."""
    rank = query.dim()
    if rank not in (2, 3):
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received "
                             f"{rank}-D query tensor")
    kind = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(f"For {kind} `query`, expected `key` and `value` to be {rank}-D but "
                             f"found {key.dim()}-D and {value.dim()}-D tensors respectively")
    if padding is not None and padding.dim() != rank - 1:
        raise AssertionError(f"For {kind} `query`, expected `key_padding_mask` to be `None` or "
                             f"{rank - 1}-D but found {padding.dim()}-D tensor instead")
    if mask is not None:
        if mask.dim() not in (2, 3):
            raise AssertionError(f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or "
                                 f"3-D but found {mask.dim()}-D tensor instead")
        if rank == 2 and mask.dim() == 3:
            expected = (heads, query.shape[0], key.shape[0])
            if mask.shape != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got "
                                     f"{mask.shape}")
    return rank == 3


def _with_extra(k: Tensor, v: Tensor, mask: Any, padding: Any, more_k: Tensor,
                more_v: Tensor, dim: int) -> tuple[Any, ...]:
    """One more key and value at the end of `dim`, that every query may see."""
    pad = public[NETWORK]["pad"]
    return (flambeau.cat([k, more_k], dim), flambeau.cat([v, more_v], dim),
            None if mask is None else pad(mask, (0, 1)),
            None if padding is None else pad(padding, (0, 1)))


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, width: int, expected: int, heads: int,
                 separate: bool) -> None:
    if width != expected:
        raise AssertionError(f"was expecting embedding dimension of {expected}, but got {width}")
    if width // heads * heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match "
                                 f"value's {value.shape[:2]}")
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


@python_function(namespace=NETWORK)
def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
        in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
        bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
        out_proj_bias: Tensor | None, training: bool = True,
        key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
        v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
        static_v: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes: project, attend in each head, project back.

    `query` (l, n, e), `key` (s, n, k), `value` (s, n, v), or without n. Returns the result
    (l, n, e) and, if `need_weights`, the weights (n, l, s), averaged over the heads or with them.
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    attn_mask, key_padding_mask, is_causal = _canonical_masks(
        attn_mask, key_padding_mask, is_causal, need_weights, query.dtype)
    _check_sizes(query, key, value, width, embed_dim_to_check, num_heads, use_separate_proj_weight)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    attn_mask = _mask_of_heads(attn_mask, batch, num_heads, length, key.shape[0])
    if bias_k is not None and bias_v is not None:
        for name, static in (("key", static_k), ("value", static_v)):
            if static is not None:
                raise AssertionError(f"bias cannot be added to static {name}.")
        k, v, attn_mask, key_padding_mask = _with_extra(
            k, v, attn_mask, key_padding_mask, bias_k.repeat(1, batch, 1),
            bias_v.repeat(1, batch, 1), 0)
    head, rows = width // num_heads, batch * num_heads
    split = lambda x: x.view(x.shape[0], rows, head).transpose(0, 1)
    q = split(q)
    k = split(k) if static_k is None else static_k
    v = split(v) if static_v is None else static_v
    if add_zero_attn:
        zeros = flambeau.zeros(rows, 1, head, dtype=k.dtype, device=k.device)
        k, v, attn_mask, key_padding_mask = _with_extra(k, v, attn_mask, key_padding_mask, zeros,
                                                        zeros, -2)
    if key_padding_mask is not None:
        spread = _spread_padding(key_padding_mask, batch, num_heads, k.shape[1])
        attn_mask = spread if attn_mask is None else attn_mask + spread
    dropout = dropout_p if training else 0.0
    if need_weights:
        attended, weights = _attend_by_weights(q, k, v, attn_mask, dropout)
        joined = attended.transpose(0, 1).reshape(length * batch, width)
    else:
        weights = None
        if attn_mask is not None:
            attn_mask = attn_mask.unsqueeze(0) if attn_mask.shape[0] == 1 else attn_mask.view(
                batch, num_heads, attn_mask.shape[1], k.shape[1])
        q, k, v = [x.view(batch, num_heads, x.shape[1], head) for x in (q, k, v)]
        attended = scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal)
        joined = attended.permute(2, 0, 1, 3).reshape(length * batch, width)
    result = public[NETWORK]["linear"](joined, out_proj_weight, out_proj_bias)
    result = result.view(length, batch, result.shape[1])
    if weights is not None:
        weights = weights.view(batch, num_heads, length, k.shape[1])
        weights = weights.mean(1) if average_attn_weights else weights
    if not batched:
        result = result.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return result, weights


def _canonical_masks(mask: Tensor | None, padding: Tensor | None, is_causal: bool,
                     need_weights: bool, dtype: Any) -> tuple[Tensor | None, Tensor | None, bool]:
    """Both masks as numbers to add, and whether being causal says all that the mask would."""
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask.")
    padding = _canonical_mask(padding, "key_padding_mask", _none_or_dtype(mask), "attn_mask", dtype)
    if is_causal and padding is None and not need_weights:
        return None, None, True
    return _canonical_mask(mask, "attn_mask", None, "", dtype, False), padding, False


def _spread_padding(padding: Tensor, batch: int, heads: int, source: int) -> Tensor:
    """The mask of padded keys, for each head and all queries."""
    for d, (size, expected) in enumerate(zip(padding.shape, (batch, source))):
        if size != expected:
            raise AssertionError(f"Expected key_padded_mask.shape[{d}] to be {expected}, but got "
                                 f"{size}")
    return padding.view(batch, 1, 1, source).expand(-1, heads, -1, -1).reshape(
        batch * heads, 1, source)


def _attend_by_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float
                       ) -> tuple[Tensor, Tensor]:
    """The result of each head, and the weights, which the fused form does not give."""
    scaled, across = q * math.sqrt(1.0 / q.shape[-1]), k.transpose(-2, -1)
    weights = softmax(flambeau.bmm(scaled, across) if mask is None
                      else flambeau.baddbmm(mask, scaled, across), -1)
    if dropout > 0:
        weights = public[NETWORK]["dropout"](weights, dropout)
    return flambeau.bmm(weights, v), weights


def _mask_of_heads(mask: Tensor | None, batch: int, heads: int, length: int, source: int) -> Any:
    """The mask with a leading dimension of 1, or of batch · heads."""
    if mask is None:
        return None
    expected = (length, source) if mask.dim() == 2 else (batch * heads, length, source)
    if mask.shape != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should "
                           f"be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _none_or_dtype(input: Tensor | None) -> Any:
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask: Tensor | None, mask_name: str, other_type: Any, other_name: str,
                    target_type: Any, check_other: bool = True) -> Tensor | None:
    """A mask as numbers to be added to scores: -inf where a boolean one is True."""
    if mask is None:
        return None
    known, floating = mask.dtype == flambeau.bool, flambeau.is_floating_point(mask)
    if not known and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use "
                      "same type for both instead.", stacklevel=3)
    if floating:
        return mask
    return flambeau.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
