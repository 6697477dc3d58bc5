"""Modules with blocks of zeros that quantise what comes in."""
from __future__ import annotations

from typing import Any

from flambeau._support.lazy.modules import parts
from flambeau.ao.nn.quantized import dynamic
from flambeau.ao.nn.sparse.quantized import _Blocks

__all__ = ["Linear"]


class Linear(_Blocks, dynamic.Linear):                      # type: ignore[misc]
    """A linear map of floats with a quantised weight that has blocks of zeros."""

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module with `sparse_params`."""
        plain = dynamic.Linear.from_float(mod)
        blocks = mod.sparse_params["sparse_block_shape"]
        result = cls(mod.in_features, mod.out_features, *blocks)
        result.set_weight_bias(*plain._weight_bias(), *blocks)
        return result

    def _get_name(self) -> str:
        return "SparseQuantizedDynamicLinear"

parts(__name__, {
    "linear": "Linear"})
