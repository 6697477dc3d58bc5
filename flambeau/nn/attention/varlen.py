"""Attention among sequences of several lengths in one tensor. It is an op of GPUs, in PyTorch too.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from flambeau import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What `varlen_attn` shall give besides: the logarithms of the sums of weights."""

    lse: bool = False


def _refuse() -> Any:
    raise NotImplementedError(
        "Could not run 'aten::_flash_attention_forward' with arguments from the 'CPU' backend. "
        "For sequences of several lengths on the CPU use nested tensors of layout torch.jagged, or "
        "a mask, with scaled_dot_product_attention.")


def varlen_attn(query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor,
                cu_seq_k: Tensor | None, max_q: int, max_k: int, *,
                return_aux: AuxRequest | None = None, scale: float | None = None,
                window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
                seqused_k: Tensor | None = None, block_table: Tensor | None = None,
                num_splits: int | None = None) -> Any:
    """NotImplementedError: on the CPU there is no such attention."""
    return _refuse()


def varlen_attn_out(out: Tensor, query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor,
                    cu_seq_k: Tensor | None, max_q: int, max_k: int, *,
                    return_aux: AuxRequest | None = None, scale: float | None = None,
                    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False,
                    seqused_k: Tensor | None = None, block_table: Tensor | None = None,
                    num_splits: int | None = None) -> Any:
    """NotImplementedError: on the CPU there is no such attention."""
    return _refuse()
