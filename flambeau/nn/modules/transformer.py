"""Transformers: stacks of attention and feed-forward layers."""

from __future__ import annotations

import copy
import warnings

import flambeau
from flambeau import Tensor
from flambeau.nn import functional as F
from flambeau.nn import init

from .activation.rectifiers import ReLU
from .activation.smooth import GELU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]


def _generate_square_subsequent_mask(size: int, device=None, dtype=None) -> Tensor:
    return flambeau.triu(flambeau.full((size, size), float("-inf"), dtype=dtype, device=device),
                         diagonal=1)


def _get_clones(module, n):
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _detect_is_causal_mask(mask, is_causal=None, size=None) -> bool:
    """Whether `mask` forbids exactly the later positions, if that is not said."""
    if is_causal is not None or mask is None:
        return is_causal is True
    size = mask.size(-2) if size is None else size
    causal = _generate_square_subsequent_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _float_mask(mask, name, dtype, other=None, other_name="", check_other=False):
    """A boolean mask as one that is added: 0, and -inf where True."""
    return F._canonical_mask(mask=mask, mask_name=name, other_type=F._none_or_dtype(other),
                             other_name=other_name, target_type=dtype, check_other=check_other)


class _Layer(Module):
    """What both layers share: the feed-forward block and how blocks are joined."""

    __constants__ = ["norm_first"]
    _blocks: int

    def _add_blocks(self, d_model, dim_feedforward, dropout, activation, layer_norm_eps,
                    norm_first, bias, factory) -> None:
        """Everything but the attention: the linear maps, and a norm and a dropout per block."""
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **factory)
        self.norm_first = norm_first
        blocks = range(1, self._blocks + 1)
        for i in blocks:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            setattr(self, f"norm{i}", norm)
        for i in blocks:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = (
            _get_activation_fn(activation) if isinstance(activation, str) else activation)

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        x = self.self_attn(x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                           need_weights=False, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return getattr(self, f"dropout{self._blocks}")(x)

    def _residual(self, x, norm, block, *args):
        """x plus what a block adds to it, normalised before the block or after the sum."""
        if self.norm_first:
            return x + block(norm(x), *args)
        return norm(x + block(x, *args))

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear maps with an activation between, each with a residual and a
    layer norm: after (as published), or before with `norm_first`.

    Vaswani et al., Attention is all you need, NeurIPS 2017.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> layer(flambeau.ones(10, 3, 8)).shape
        torch.Size([10, 3, 8])
    """

    _blocks = 2

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation=F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias,
                                            batch_first=batch_first, **factory)
        self._add_blocks(d_model, dim_feedforward, dropout, activation, layer_norm_eps,
                         norm_first, bias, factory)
        self.activation_relu_or_gelu = 1 if self.activation is F.relu or isinstance(
            self.activation, ReLU) else 2 if self.activation is F.gelu or isinstance(
            self.activation, GELU) else 0

    def _skips_padding(self, src, src_mask):
        """In evaluation without gradients, positions that are padding are not computed."""
        attention = self.self_attn
        return (
            src_mask is None
            and src.dim() == 3
            and not self.training
            and attention.batch_first
            and attention._qkv_same_embed_dim
            and attention.in_proj_bias is not None
            and attention.num_heads % 2 == 0
            and self.norm1.eps == self.norm2.eps
            and self.activation in (F.relu, F.gelu)
            and not (flambeau.is_grad_enabled()
                     and any(p.requires_grad for p in (src, *self.parameters())))
        )

    def forward(self, src: Tensor, src_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        padding = _float_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask,
                              "src_mask", True)
        mask = _float_mask(src_mask, "src_mask", src.dtype)
        x = self._residual(src, self.norm1, self._sa_block, mask, padding, is_causal)
        return self._residual(x, self.norm2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, then two linear maps, each with a residual
    and a layer norm.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> layer(flambeau.ones(5, 3, 8), flambeau.ones(10, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    _blocks = 3

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation=F.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first,
                                           bias=bias, **factory)
            setattr(self, name, attention)
        self._add_blocks(d_model, dim_feedforward, dropout, activation, layer_norm_eps,
                         norm_first, bias, factory)

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
                memory_is_causal: bool = False) -> Tensor:
        x = self._residual(tgt, self.norm1, self._sa_block, tgt_mask, tgt_key_padding_mask,
                           tgt_is_causal)
        x = self._residual(x, self.norm2, self._mha_block, memory, memory_mask,
                           memory_key_padding_mask, memory_is_causal)
        return self._residual(x, self.norm3, self._ff_block)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        x = self.multihead_attn(x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask,
                                is_causal=is_causal, need_weights=False)[0]
        return self.dropout2(x)


class TransformerEncoder(Module):
    """`num_layers` copies of an encoder layer, one after the other, and a norm.

    Example:
        >>> layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        >>> encoder(flambeau.ones(10, 3, 8)).shape
        torch.Size([10, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, encoder_layer: TransformerEncoderLayer, num_layers: int,
                 norm: Module | None = None, enable_nested_tensor: bool = True,
                 mask_check: bool = True) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        obstacle = self._nested_obstacle(encoder_layer)
        if enable_nested_tensor and obstacle:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{obstacle}", stacklevel=2)
            self.use_nested_tensor = False

    @staticmethod
    def _nested_obstacle(layer):
        """Why padding cannot be skipped with this layer, or None."""
        if not isinstance(layer, TransformerEncoderLayer):
            return "encoder_layer was not TransformerEncoderLayer"
        if layer.norm_first:
            return "encoder_layer.norm_first was True"
        attention = layer.self_attn
        if not attention.batch_first:
            return ("encoder_layer.self_attn.batch_first was not True"
                    "(use batch_first for better inference performance)")
        if not attention._qkv_same_embed_dim:
            return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
        if attention.in_proj_bias is None:
            return "encoder_layer.self_attn was passed bias=False"
        if layer.activation not in (F.relu, F.gelu):
            return "encoder_layer.activation_relu_or_gelu was not True"
        if layer.norm1.eps != layer.norm2.eps:
            return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
        if attention.num_heads % 2 == 1:
            return "encoder_layer.self_attn.num_heads is odd"
        return None

    def forward(self, src: Tensor, mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                is_causal: bool | None = None) -> Tensor:
        padding = _float_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask",
                              True)
        mask = _float_mask(mask, "mask", src.dtype)
        batch_first = self.layers[0].self_attn.batch_first
        length = None if src.is_nested else src.size()[1 if batch_first and src.dim() != 2 else 0]
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if self._drops_padding(src, mask, src_key_padding_mask):
            output = _without_padding(output, src_key_padding_mask)
        return output if self.norm is None else self.norm(output)

    def _drops_padding(self, src, mask, src_key_padding_mask):
        """Whether PyTorch would compute this on nested tensors, which know no padding."""
        return (src_key_padding_mask is not None and self.use_nested_tensor
                and self.layers[0]._skips_padding(src, mask)
                and src_key_padding_mask.dtype == flambeau.bool
                and _is_left_aligned(src_key_padding_mask))


def _is_left_aligned(padding):
    """Whether padding stands only at the end of every row."""
    return bool((padding[:, 1:] >= padding[:, :-1]).all())


def _without_padding(output, padding):
    """Zeros where padding is."""
    return output.masked_fill(padding.unsqueeze(-1), 0.0)


class TransformerDecoder(Module):
    """`num_layers` copies of a decoder layer, one after the other, and a norm.

    Example:
        >>> layer = nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> decoder = nn.TransformerDecoder(layer, num_layers=2)
        >>> decoder(flambeau.ones(5, 3, 8), flambeau.ones(10, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int,
                 norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
                memory_is_causal: bool = False) -> Tensor:
        batch_first = self.layers[0].self_attn.batch_first
        length = tgt.size()[1 if batch_first and tgt.dim() != 2 else 0]
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(output, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                           tgt_key_padding_mask=tgt_key_padding_mask,
                           memory_key_padding_mask=memory_key_padding_mask,
                           tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder. All matrices are drawn by Xavier's uniform rule.

    Shape: src (S, N, E), tgt (T, N, E) → (T, N, E); batch first with `batch_first`; or without N.

    Example:
        >>> model = nn.Transformer(
        ...     d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16
        ... )
        >>> model(flambeau.ones(10, 3, 8), flambeau.ones(5, 3, 8)).shape
        torch.Size([5, 3, 8])
    """

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation=F.relu, custom_encoder=None, custom_decoder=None,
                 layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
                 bias: bool = True, device=None, dtype=None) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        options = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
                   batch_first, norm_first, bias)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*options, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*options, **factory)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **factory)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self):
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None,
                tgt_is_causal: bool | None = None, memory_is_causal: bool = False) -> Tensor:
        batched, batch_dim = src.dim() == 3, 0 if self.batch_first else 1
        if src.size(batch_dim) != tgt.size(batch_dim) and batched:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask,
                              is_causal=src_is_causal)
        return self.decoder(tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                            tgt_key_padding_mask=tgt_key_padding_mask,
                            memory_key_padding_mask=memory_key_padding_mask,
                            tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """A mask that lets position i attend to positions up to i.

        Example:
            >>> nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return _generate_square_subsequent_mask(sz, device=device, dtype=dtype)
