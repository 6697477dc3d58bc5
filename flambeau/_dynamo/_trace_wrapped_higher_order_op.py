"""A mode that PyTorch needs for indexing by batched tensors."""
from __future__ import annotations

from typing import Any

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Inside, indexing by batched tensors of one element works. Here it always does."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None
