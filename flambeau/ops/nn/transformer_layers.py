"""Whole layers of transformers as one op each: what PyTorch's modules run where nothing is
differentiated."""
from __future__ import annotations

import math
import warnings

import numpy as np

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op
from flambeau.ops.nn.activation import gelu
from flambeau.ops.nn.affine import linear
from flambeau.ops.nn.normalize import layer_norm
from flambeau.ops.nn.softmax import _masked_softmax


@op("_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> "
    "(Tensor, Tensor, Tensor)", method=False, out=False, explicit=True)
def _transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int
                                ) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values in heads (n, heads, l, width) from projections (n, l, 3 d) without
    bias; the queries are divided by the root of the width."""
    batch, length, three = [qkv.size(d) for d in range(3)]
    for holds, said in ((three % 3 == 0, "_3D % 3 == 0"),
                        (three // 3 % num_heads == 0, "D % num_head == 0")):
        if not holds:
            raise RuntimeError(f"Expected {said} to be true, but got false.")
    width = three // 3 // num_heads
    heads = (qkv + qkv_bias).view(batch, length, 3, num_heads, width).permute(2, 0, 3, 1, 4)
    q, k, v = heads.contiguous().unbind(0)
    return q / math.sqrt(width), k.clone(), v.clone()


def _check_layer(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int,
                 qkv_weight: Tensor, qkv_bias: Tensor) -> None:
    shape = tuple(query._array.shape)
    if len(shape) != 3:
        raise RuntimeError(f"expected 3-D `query`, got {len(shape)}-D tensor")
    if embed_dim != shape[-1]:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query "
                           f"{shape[-1]}")
    for x, name in ((key, "key"), (value, "value")):
        if x._array.ndim != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {x._array.ndim}-D tensor")
    if not shape == key._array.shape == value._array.shape:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if qkv_weight._array.ndim != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {qkv_weight._array.ndim}-D tensor")
    if 3 * embed_dim != qkv_weight._array.shape[0]:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if qkv_weight._array.shape[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if qkv_bias._array.ndim != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {qkv_bias._array.ndim}-D tensor")
    if qkv_bias._array.shape[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


def _project(query: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
    """All three beside each other; with one multiplication if they are one tensor."""
    if query is key is value:
        return linear(query, weight)
    parts = zip((query, key, value), weight.chunk(3))
    return flambeau.cat([linear(x, w) for x, w in parts], -1)


@op("_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int "
    "num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? "
    "mask=None, bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> "
    "(Tensor, Tensor)", method=False, out=False, explicit=True)
def _native_multi_head_attention(
        query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int,
        qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
        mask: Tensor | None, need_weights: bool, average_attn_weights: bool, mask_type: int | None
        ) -> tuple[Tensor, Tensor | None]:
    """Attention in several heads over inputs (n, l, d), with its weights if they are wanted.

    mask        of what is left out: (l, l) if `mask_type` is 0, (n, l) if it is 1
    """
    if mask is not None and mask._array.dtype != np.bool_:
        warnings.warn("Converting mask without torch.bool dtype to bool; this will negatively "
                      "affect performance. Prefer to use a boolean mask directly.", stacklevel=2)
        mask = mask.to(flambeau.bool)
    _check_layer(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    qkv = _project(query, key, value, qkv_weight)
    q, k, v = _transform_bias_rescale_qkv(qkv, qkv_bias, num_head)
    scores = q @ k.mT
    weights = scores.softmax(-1) if mask is None else _masked_softmax(scores, mask, 3, mask_type)
    attended = (weights @ v).transpose(1, 2).reshape(query._array.shape)
    result = linear(attended, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


@op("_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float "
    "eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
    "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? "
    "mask=None, int? mask_type=None) -> Tensor", method=False, out=False, explicit=True)
def _transformer_encoder_layer_fwd(
        src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor,
        proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float,
        norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
        ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor,
        mask: Tensor | None, mask_type: int | None) -> Tensor:
    """A layer of an encoder: attention and a network of two layers, each added to its input and
    normalised, before (`norm_first`) or after."""
    def first_norm(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        return _native_multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask,
            False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(hidden) if use_gelu else flambeau.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first_norm(src))
        return x + feed_forward(second_norm(x))
    x = first_norm(src + attend(src))
    return second_norm(x + feed_forward(x))


__all__: list[str] = []
