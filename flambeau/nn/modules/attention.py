"""Multi-head attention."""

from __future__ import annotations

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter
from flambeau.ops.nn.attention import _canonical_mask, _none_or_dtype

from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    r"""Attention in several subspaces at once:

    .. math:: \mathrm{out} = [h_1, \dots, h_H] W^O, \quad
        h_i = \mathrm{softmax}\bigl(Q W_i^Q (K W_i^K)^\top / \sqrt{d}\bigr) V W_i^V

    Shape: query (L, N, E), key (S, N, kdim), value (S, N, vdim), or batch first, or without N.
    Returns the output (L, N, E) and the weights (N, L, S), averaged over heads unless
    `average_attn_weights` is False; None if `need_weights` is False.
    Vaswani et al., Attention is all you need, NeurIPS 2017.

    Example:
        >>> attention = nn.MultiheadAttention(embed_dim=4, num_heads=2)
        >>> x = flambeau.ones(3, 1, 4)
        >>> output, weights = attention(x, x, x)
        >>> output.shape, weights.shape
        (torch.Size([3, 1, 4]), torch.Size([1, 3, 3]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False,
                 add_zero_attn=False, kdim=None, vdim=None, batch_first=False, device=None,
                 dtype=None) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError("embed_dim and num_heads must be greater than 0,"
                             f" got embed_dim={embed_dim} and num_heads={num_heads} instead")
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != self.embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        # One weight for query, key and value where their sizes agree, else three.
        sizes = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if not self._qkv_same_embed_dim:
            for name, size in sizes.items():
                setattr(self, name, Parameter(flambeau.empty((embed_dim, size), **factory)))
            self.register_parameter("in_proj_weight", None)
        else:
            joint = flambeau.empty((3 * embed_dim, embed_dim), **factory)
            self.in_proj_weight = Parameter(joint)
            for name in sizes:
                self.register_parameter(name, None)
        if bias:
            self.in_proj_bias = Parameter(flambeau.empty(3 * embed_dim, **factory))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **factory)
        if add_bias_kv:
            self.bias_k = Parameter(flambeau.empty((1, 1, embed_dim), **factory))
            self.bias_v = Parameter(flambeau.empty((1, 1, embed_dim), **factory))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Attend from `query` to `key` and `value`.

        `key_padding_mask` (N, S) and `attn_mask` (L, S) or (N·heads, L, S) forbid positions
        (boolean, True) or are added to the scores (float).
        """
        is_batched = query.dim() == 3
        slow = self._why_not_in_one(query, key, value, key_padding_mask, attn_mask)
        key_padding_mask = _canonical_mask(mask=key_padding_mask, mask_name="key_padding_mask",
                                           other_type=_none_or_dtype(attn_mask),
                                           other_name="attn_mask", target_type=query.dtype)
        attn_mask = _canonical_mask(mask=attn_mask, mask_name="attn_mask", other_type=None,
                                    other_name="", target_type=query.dtype, check_other=False)
        if not slow and self.in_proj_bias is not None:
            mask, kind = self.merge_masks(attn_mask, key_padding_mask, query)
            output, weights = flambeau._native_multi_head_attention(
                query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
                self.in_proj_bias, self.out_proj.weight, self.out_proj.bias,
                None if mask is None else mask.bool(), need_weights, average_attn_weights, kind)
            return output, weights
        if query.is_nested or key.is_nested or value.is_nested:
            raise AssertionError("MultiheadAttention does not support NestedTensor outside of its "
                                 f"fast path. The fast path was not hit because {slow}")
        swap = self.batch_first and is_batched
        if swap:
            query, key, value = _swap_batch(query, key, value)
        separate = {}
        if not self._qkv_same_embed_dim:
            separate = {"use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight,
                        "k_proj_weight": self.k_proj_weight, "v_proj_weight": self.v_proj_weight}
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **separate)
        return (output.transpose(1, 0) if swap else output), weights

    def _why_not_in_one(self, query, key, value, key_padding_mask, attn_mask) -> str:
        """Why this cannot run as one op, "" if it can. PyTorch's tests come in this order."""
        bias, weight, dtype = self.in_proj_bias, self.in_proj_weight, query.dtype
        masks = [m for m in (attn_mask, key_padding_mask) if m is not None]
        if any(flambeau.is_floating_point(m) for m in masks):
            return "floating-point masks are not supported for fast path."
        if not flambeau.backends.mha.get_fastpath_enabled():
            return "torch.backends.mha.get_fastpath_enabled() was not True"
        if query.dim() != 3:
            return f"input not batched; expected query.dim() of 3 but got {query.dim()}"
        if query is not key or key is not value:
            return "non-self attention was used (query, key, and value are not the same Tensor)"
        if bias is not None and dtype != bias.dtype:
            return f"dtypes of query ({dtype}) and self.in_proj_bias ({bias.dtype}) don't match"
        if weight is None:
            return "in_proj_weight was None"
        if dtype != weight.dtype:
            return f"dtypes of query ({dtype}) and self.in_proj_weight ({weight.dtype}) don't match"
        for obstacle, text in ((self.training, "training is enabled"),
                               (self.num_heads % 2, "self.num_heads is not even"),
                               (not self.batch_first, "batch_first was not True"),
                               (self.bias_k is not None, "self.bias_k was not None"),
                               (self.bias_v is not None, "self.bias_v was not None"),
                               (self.add_zero_attn, "add_zero_attn was enabled")):
            if obstacle:
                return text
        if query.is_nested and (key_padding_mask is not None or attn_mask is not None):
            return ("supplying both src_key_padding_mask and src_mask at the same time"
                    "                                  is not supported with NestedTensor input")
        if flambeau.is_autocast_enabled():
            return "autocast is enabled"
        return self._what_is_followed(query)

    def _what_is_followed(self, query) -> str:
        """Why the op would not do: what has to see the single steps."""
        tensors = [t for t in (query, self.in_proj_weight, self.in_proj_bias, self.out_proj.weight,
                               self.out_proj.bias) if t is not None]
        if flambeau.overrides.has_torch_function(tensors):
            return "some Tensor argument has_torch_function"
        if flambeau.is_grad_enabled() and any(t.requires_grad for t in tensors):
            return ("grad is enabled and at least one of query or the input/output projection "
                    "weights or biases requires_grad")
        return ""

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """The two masks as one, and its kind: 1 padding alone, 2 for each head; None without."""
        if attn_mask is None:
            return key_padding_mask, (None if key_padding_mask is None else 1)
        batch, length, _ = query.shape
        if attn_mask.dim() == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length)
        merged = merged.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is None:
            return merged, 2
        padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged + padding, 2


def _swap_batch(query, key, value):
    """Batch and length exchanged; tensors that were the same object stay so."""
    if key is value:
        if query is key:
            query = key = value = query.transpose(1, 0)
        else:
            query, key = query.transpose(1, 0), key.transpose(1, 0)
            value = key
        return query, key, value
    return tuple(x.transpose(1, 0) for x in (query, key, value))
