"""`MultiheadAttention` whose products are modules, so that each can be observed and quantised."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.ao.nn.float_functional import FloatFunctional

F = nn.functional


def _zero_row(x: Tensor) -> Tensor:
    """A row of zeros for each head, quantised if `x` is."""
    zeros = flambeau.zeros(x.size(0), 1, x.size(2))
    return flambeau.quantize_per_tensor(zeros, x.q_scale(), x.q_zero_point(), x.dtype) \
        if x.is_quantized else zeros


class MultiheadAttention(nn.MultiheadAttention):
    """`nn.MultiheadAttention` with a module for each projection.

    >>> from flambeau.ao.nn import quantizable
    >>> x = flambeau.ones(3, 1, 4)
    >>> quantizable.MultiheadAttention(4, 2)(x, x, x)[0].shape
    torch.Size([3, 1, 4])
    """

    _FLOAT_MODULE: Any = nn.MultiheadAttention

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True,
                 add_bias_kv: bool = False, add_zero_attn: bool = False, kdim: int | None = None,
                 vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None):
        super().__init__(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim,
                         vdim, batch_first, device, dtype)
        sizes = (self.embed_dim, self.kdim, self.vdim, self.embed_dim)
        for name, size in zip(("linear_Q", "linear_K", "linear_V", "out_proj"), sizes):
            setattr(self, name, nn.Linear(size, self.embed_dim, bias=bias, device=device,
                                          dtype=dtype))
        self.q_scaling_product = FloatFunctional()
        from flambeau.ao.quantization.stubs import DeQuantStub, QuantStub  # import this package
        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = (DeQuantStub() for _ in range(3))

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    @classmethod
    def from_float(cls, other: Any) -> Any:
        """The weights of a float module, prepared with its qconfig."""
        from flambeau.ao.quantization.quantize import prepare
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        observed: Any = cls(other.embed_dim, other.num_heads, other.dropout,
                            other.in_proj_bias is not None, other.bias_k is not None,
                            other.add_zero_attn, other.kdim, other.vdim, other.batch_first)
        observed.bias_k, observed.bias_v = other.bias_k, other.bias_v
        observed.qconfig = other.qconfig
        observed.out_proj.weight, observed.out_proj.bias = other.out_proj.weight, \
            other.out_proj.bias
        weights = other.in_proj_weight.chunk(3) if other._qkv_same_embed_dim else (
            other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        for linear, w, b in zip((observed.linear_Q, observed.linear_K, observed.linear_V), weights,
                                biases):
            linear.weight = nn.Parameter(w.detach(), w.requires_grad)
            linear.bias = None if b is None else nn.Parameter(b.detach(), b.requires_grad)
        return prepare(observed.eval(), inplace=True)

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Not offered: `nn.quantized.MultiheadAttention` is what an observed module becomes."""
        raise NotImplementedError("It looks like you are trying to prepare an MHA module. Please, "
                                  "see the examples on quantizable MHAs.")

    def dequantize(self) -> nn.MultiheadAttention:
        """A float module with the numbers that quantised weights stand for."""
        parts = {name: getattr(self, name)._weight_bias()
                 for name in ("linear_Q", "linear_K", "linear_V", "out_proj")}
        own: Any = self
        bias = parts["linear_Q"][1] is not None
        result = nn.MultiheadAttention(self.embed_dim, self.num_heads, self.dropout, bias,
                                       own.bias_k is not None, self.add_zero_attn, self.kdim,
                                       self.vdim, self.batch_first)
        weights = [w.dequantize() for w, _ in list(parts.values())[:3]]
        with flambeau.no_grad():
            if result._qkv_same_embed_dim:
                result.in_proj_weight.copy_(flambeau.cat(weights))
            else:
                for name, w in zip("qkv", weights):
                    getattr(result, f"{name}_proj_weight").copy_(w)
            if bias:
                result.in_proj_bias.copy_(flambeau.cat([b for _, b in list(parts.values())[:3]]))
                result.out_proj.bias.copy_(parts["out_proj"][1])
            result.out_proj.weight.copy_(parts["out_proj"][0].dequantize())
            for name in ("bias_k", "bias_v"):
                if getattr(own, name) is not None:
                    getattr(result, name).copy_(getattr(own, name).dequantize())
        return result

    def forward(self, query: Tensor, key: Tensor, value: Tensor,
                key_padding_mask: Tensor | None = None, need_weights: bool = True,
                attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        if is_causal:
            raise AssertionError("Only allow causal mask or attn_mask" if attn_mask is not None
                                 else "causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        length, batch, size = query.shape
        if size != self.embed_dim:
            raise AssertionError(f"embed_dim mismatch: {self.embed_dim} != {size}")
        own: Any = self
        head_dim = size // self.num_heads
        q = own.q_scaling_product.mul_scalar(own.linear_Q(query), float(head_dim) ** -0.5)
        k, v = own.linear_K(key), own.linear_V(value)
        if own.bias_k is not None and own.bias_v is not None:
            k = flambeau.cat([k, own.bias_k.repeat(1, batch, 1)])
            v = flambeau.cat([v, own.bias_v.repeat(1, batch, 1)])

        def heads(x: Tensor) -> Tensor:
            return x.contiguous().view(-1, batch * self.num_heads, head_dim).transpose(0, 1)

        q, k, v = heads(q), heads(k), heads(v)
        if self.add_zero_attn:
            k, v = (flambeau.cat([x, _zero_row(x)], dim=1) for x in (k, v))
        scores = flambeau.bmm(own.dequant_q(q), own.dequant_k(k).transpose(1, 2))
        weights = F.softmax(self._masked(scores, attn_mask, key_padding_mask, batch), dim=-1)
        weights = F.dropout(weights, p=self.dropout, training=self.training)
        result = flambeau.bmm(weights, own.dequant_v(v)).transpose(0, 1).contiguous()
        result = own.quant_attn_output(result.view(length, batch, size))
        result = own.out_proj(result.transpose(0, 1) if self.batch_first else result)
        weights = own.quant_attn_output_weights(weights)
        if not need_weights:
            return result, None
        weights = weights.view(batch, self.num_heads, length, k.size(1))
        return result, weights.mean(dim=1) if average_attn_weights else weights

    def _masked(self, scores: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None,
                batch: int) -> Tensor:
        """The scores less what the masks forbid; keys that were added are always allowed."""
        heads, length, keys = scores.shape
        if attn_mask is not None:
            if attn_mask.dim() not in (2, 3):
                raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
            attn_mask = F.pad(attn_mask, [0, keys - attn_mask.size(-1)])
            scores = scores.masked_fill(attn_mask, float("-inf")) \
                if attn_mask.dtype is flambeau.bool else scores + attn_mask
        if key_padding_mask is not None:
            hidden = F.pad(key_padding_mask.bool(), [0, keys - key_padding_mask.size(1)])
            scores = scores.view(batch, self.num_heads, length, keys).masked_fill(
                hidden[:, None, None], float("-inf")).view(heads, length, keys)
        return scores
