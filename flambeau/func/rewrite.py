"""`functionalize`: a function without visible writes."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.ops.view.conversion import clone
from flambeau.utils._pytree import tree_map


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, which may write to tensors inside; its arguments are written to only at the end.

    In an eager library there is no program to rewrite: the function runs on copies of its
    arguments, and what it wrote to them is copied back.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are:\n    remove='mutations': the writes are taken out\n"
            "    remove='mutations_and_views': … and views are copies")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        pairs: list[tuple[Tensor, Tensor]] = []

        def copied(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            fresh = clone(x)
            pairs.append((x, fresh))
            return fresh
        result = func(*tree_map(copied, args), **tree_map(copied, kwargs))
        for original, fresh in pairs:
            if fresh.is_inference() or fresh._version:
                original.copy_(fresh)
        back = {id(fresh): original for original, fresh in pairs}
        return tree_map(lambda x: back.get(id(x), x), result)
    return wrapper
