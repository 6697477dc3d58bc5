"""Embeddings with tables of small integers."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.ao.nn.quantized.modules.utils import _Described, _quantize_weight
from flambeau.ops.quantized import library as ops

_TYPES = (flambeau.quint8, flambeau.quint4x2)


class EmbeddingPackedParams(nn.Module):
    """The table as the quantised look-up takes it."""

    _version = 1

    def __init__(self, num_embeddings: int, embedding_dim: int, dtype: Any = flambeau.quint8):
        super().__init__()
        self.dtype = dtype
        if dtype not in _TYPES:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2. Got "
                f"dtype: {dtype}")
        self.set_weight(flambeau.quantize_per_channel(
            flambeau.zeros(num_embeddings, embedding_dim), flambeau.ones(num_embeddings),
            flambeau.zeros(num_embeddings), 0, dtype))

    def set_weight(self, weight: Tensor) -> None:
        """Take a table, quantised row by row."""
        self._packed_weight = ops.embedding_bag_prepack(weight)

    def _weight(self) -> Tensor:
        return self._packed_weight.unpack()

    def forward(self, x: Tensor) -> Tensor:
        return x

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_weight"] = self._weight()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.dtype = state_dict.pop(prefix + "dtype")
        self.set_weight(state_dict.pop(prefix + "_packed_weight"))
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(_Described):
    """Rows of a table of integers; the results are floats.

    >>> from flambeau.ao.nn import quantized
    >>> quantized.Embedding(4, 3)(flambeau.tensor([1, 2])).shape
    torch.Size([2, 3])
    """

    _version = 1
    _FLOAT_MODULE: Any = nn.Embedding

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, dtype: Any = flambeau.quint8):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype
        self.sparse, self.padding_idx = sparse, padding_idx
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and "
                                     "embedding_dim")
            self._packed_params.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        return ops.embedding_byte(self._packed_params._packed_weight, indices)

    def set_weight(self, w: Tensor) -> None:
        """Take a table, quantised row by row."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """The table."""
        return self._packed_params._weight()

    def extra_repr(self) -> str:
        return (f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
                f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}")

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module, or of one trained with rounding."""
        from flambeau.ao.quantization.qconfig import float_qparams_weight_only_qconfig
        watch = getattr(mod, "weight_fake_quant", None)
        if watch is None:
            if not isinstance(mod, cls._FLOAT_MODULE):
                raise AssertionError(f"nnq.{cls.__name__}.from_float only works for "
                                     f"{cls._FLOAT_MODULE.__name__}")
            qconfig = getattr(mod, "qconfig", None) or float_qparams_weight_only_qconfig
            watch = qconfig.weight()
        if watch.qscheme is not flambeau.per_channel_affine_float_qparams:
            raise AssertionError("Embedding quantization is only supported with "
                                 "float_qparams_weight_only_qconfig.")
        if watch.dtype not in _TYPES:
            raise AssertionError("The only supported dtype for nnq.Embedding is torch.quint8 and "
                                 f"torch.quint4x2, got {watch.dtype}")
        watch(mod.weight)
        result = cls._like(mod, watch.dtype)
        result.set_weight(_quantize_weight(mod.weight.detach().float(), watch))
        return result

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype)

    @classmethod
    def from_reference(cls, ref_embedding: Any) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        return cls._from_reference(ref_embedding)

    @classmethod
    def _from_reference(cls, mod: Any) -> Any:
        result = cls._like(mod, mod.weight_dtype)
        result.set_weight(mod.get_quantized_weight())
        return result


class EmbeddingBag(Embedding):
    """Sums of rows of a table of integers."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "sum",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, dtype: Any = flambeau.quint8):
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode, self.pruned_weights = mode, False
        self.include_last_offset = include_last_offset

    def forward(self, indices: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None,
                compressed_indices_mapping: Any = None) -> Tensor:
        return ops.embedding_bag_byte(
            self._packed_params._packed_weight, indices, offsets, False, 0, self.pruned_weights,
            per_sample_weights, compressed_indices_mapping, self.include_last_offset)

    @classmethod
    def _like(cls, mod: Any, dtype: Any) -> Any:
        return cls(mod.num_embeddings, mod.embedding_dim, dtype=dtype,
                   include_last_offset=mod.include_last_offset)

    @classmethod
    def from_reference(cls, ref_embedding_bag: Any) -> Any:
        """The quantised form of a module from `quantized.reference`."""
        return cls._from_reference(ref_embedding_bag)


__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]
