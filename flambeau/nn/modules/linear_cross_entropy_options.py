"""How a linear layer and the cross entropy of its output share their work."""

from __future__ import annotations

from dataclasses import dataclass

import flambeau

__all__ = ["LinearCrossEntropyOptions"]


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` may split its work to save memory.

    They choose between computations of the same result.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: flambeau.dtype | None = None

    def __post_init__(self):
        if self.chunking_method not in (None, "auto", "batch", "aspect_ratio", "memory"):
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size}")
        dtypes = (flambeau.float16, flambeau.bfloat16, flambeau.float32, flambeau.float64)
        if self.acc_dtype is not None and self.acc_dtype not in dtypes:
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, "
                f"torch.float64}}, got {self.acc_dtype}. Pass acc_dtype=None to let the op pick "
                "automatically.")
