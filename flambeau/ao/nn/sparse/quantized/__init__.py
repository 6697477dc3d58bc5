"""Quantised modules whose weights have blocks of zeros. They compute as the dense ones do."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau._support.lazy.modules import lazy_modules
from flambeau._support.own_methods import define_in_subclasses
from flambeau.ao.nn.quantized.modules import linear as dense

__all__ = ["Linear", "dynamic"]
__getattr__ = lazy_modules(__name__, "dynamic")


@define_in_subclasses()
class _Blocks:
    """The size of the blocks: `mod.sparse_params` says it when a module is converted."""

    row_block_size: int
    col_block_size: int

    def __init__(self, in_features: int, out_features: int, row_block_size: int,
                 col_block_size: int, bias: bool = True, dtype: Any = flambeau.qint8):
        if dtype is not flambeau.qint8:
            raise NotImplementedError("Only QINT8 is supported for Sparse Quantized Linear")
        base: Any = super()
        base.__init__(in_features, out_features, bias, dtype)
        self.row_block_size, self.col_block_size = row_block_size, col_block_size

    def set_weight_bias(self, w: Any, b: Any, row_block_size: int | None,
                        col_block_size: int | None) -> None:
        """Take a quantised weight with blocks of that size, and a bias."""
        base: Any = super()
        base.set_weight_bias(w, b)
        if row_block_size is not None and col_block_size is not None:
            self.row_block_size, self.col_block_size = row_block_size, col_block_size

    def _take(self, w: Any, b: Any) -> None:
        self.set_weight_bias(w, b, self.row_block_size, self.col_block_size)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The quantised form of a float module with `sparse_params`."""
        if not hasattr(mod, "sparse_params"):
            raise AssertionError("Expecting the Linear to have `sparse_params`. Make sure you have "
                                 'provided arguments in the `sparsifier.squash_mask(params_to_save='
                                 '("sparse_block_shape",))` method.')
        rows, columns = mod.sparse_params["sparse_block_shape"]
        base: Any = super()
        float_base = base.from_float
        plain = float_base(mod)
        plain.row_block_size, plain.col_block_size = rows, columns
        return plain

    def _get_name(self) -> str:
        return "SparseQuantizedLinear"


class Linear(_Blocks, dense.Linear):                        # type: ignore[misc]
    """A quantised linear map whose weight has blocks of zeros."""

    @classmethod
    def _like(cls, mod: Any) -> Any:
        return cls(mod.in_features, mod.out_features, *mod.sparse_params["sparse_block_shape"])
