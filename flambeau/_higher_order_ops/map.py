"""A function of each element along the first dimension."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.utils import _pytree

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each `x` along the first dimension of `xs`, stacked.

    >>> import flambeau
    >>> map(lambda x, y: x * y, flambeau.ones(2, 1), flambeau.tensor(3.0))
    tensor([[3.],
            [3.]])
    """
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise RuntimeError(f"map() operator needs tensors to map over, but got {xs}")
    counts = {len(x) if x.ndim else 0 for x in leaves}
    if len(counts) > 1 or 0 in counts:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0 and must be consistent, "
                           f"but got {[tuple(x.shape) for x in leaves]}")
    kept, shape = [], None
    for i in range(counts.pop()):
        found, shape = _pytree.tree_flatten(
            f(_pytree.tree_unflatten([x[i] for x in leaves], spec), *args))
        kept.append(found)
    return _pytree.tree_unflatten([flambeau.stack(values) for values in zip(*kept)], shape)
