"""The class of nested tensors, and how tensors of layout `jagged` are made."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau.nested._internal.nested_int import (
    NestedInt,
    _tensor_symint_registry,
    get_tensor_symint,
)
from flambeau.nested.tensors import (
    NestedTensor,
    _load_val_from_tensor,
    _rebuild_njt,
    _store_val_in_tensor,
    join,
    over_jagged,
)


def nested_view_from_values_offsets(values: Tensor, offsets: Tensor, ragged_idx: int = 1,
                                    min_seqlen: int | None = None,
                                    max_seqlen: int | None = None) -> NestedTensor:
    """A tensor whose parts begin at `offsets` in `values`."""
    return over_jagged(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(values: Tensor, offsets: Tensor, lengths: Tensor,
                                            ragged_idx: int = 1, min_seqlen: int | None = None,
                                            max_seqlen: int | None = None) -> NestedTensor:
    """The same with gaps: parts of these lengths."""
    return over_jagged(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def jagged_from_list(tensors: list[Tensor], offsets: Tensor | None, dtype: Any = None,
                     device: Any = None) -> tuple[NestedTensor, Tensor]:
    """A tensor of these parts, copied; with its offsets."""
    import flambeau
    parts = [t.to(dtype=dtype or t.dtype, device=device or t.device) for t in tensors]
    made = join(parts, flambeau.jagged)
    if offsets is not None:
        made = NestedTensor(made.values(), offsets, _ragged_idx=made._ragged_idx)
    return made, made.offsets()


def jagged_from_tensor_and_lengths(tensor: Tensor, starts: Tensor, lengths: Tensor
                                   ) -> tuple[NestedTensor, Tensor, Tensor | None]:
    """Of each row of a tensor a part, from `starts` on."""
    import flambeau
    count, room = tensor.shape[:2]
    starts = starts.expand(count)
    offsets = flambeau.cat([flambeau.arange(count) * room + starts,
                            flambeau.tensor([count * room])])
    lengths = lengths.expand(count).clone()
    values = tensor.reshape(count * room, *tensor.shape[2:])
    made = NestedTensor(values, offsets, lengths=lengths)
    return made, offsets, lengths


def buffer_from_jagged(jagged: NestedTensor) -> Tensor:
    """The elements of all parts."""
    return jagged.values()


__all__ = ["NestedInt", "NestedTensor", "_load_val_from_tensor", "_rebuild_njt",
           "_store_val_in_tensor",
           "_tensor_symint_registry", "buffer_from_jagged", "get_tensor_symint",
           "jagged_from_list", "jagged_from_tensor_and_lengths",
           "nested_view_from_values_offsets", "nested_view_from_values_offsets_lengths"]
