"""The `vmap` of batches of gradients: random ops are refused in it without a choice."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.func import batch


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
          allow_none_pass_through: bool = False) -> Callable[..., Any]:
    """`func` for all slices of its arguments at once.

    >>> import flambeau
    >>> _vmap(lambda row: row.sum())(flambeau.ones(2, 3))
    tensor([3., 3.])
    """
    @functools.wraps(func)
    def batched(*args: Any) -> Any:
        size, dims, leaves, spec = batch._process_batched_inputs(in_dims, args, func)
        return batch.run_batched(func, size, dims, leaves, spec, out_dims, "never", {})
    return batched


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The old name of `flambeau.vmap`."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning,
                  stacklevel=2)
    return _vmap(func, in_dims, out_dims)
