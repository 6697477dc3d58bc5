"""`functionalize`: a function without visible writes."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.ops.view.conversion import clone
from flambeau.utils._pytree import tree_map


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func`, which may write to tensors inside; its arguments are written to only at the end.

    Where `make_fx` traces it, the graph has no writes, and views are taken again after what was one
    (with `remove="mutations_and_views"` they are copies). Else there is no program to rewrite: the
    function runs on copies of its arguments, and what it wrote to them is copied back.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are:\n     remove='mutations': all inplace and out= operators will be "
            "removed from the program, and replaced with their out-of-place equivalents.\n     "
            "remove='mutations_and_views': In addition to the above, all aliasing operators {view} "
            "will be replaced with their non-aliasing counterparts, {view}_copy.\n")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if _is_traced():
            return _without_writes(func, remove != "mutations", args, kwargs)
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


def _is_traced() -> bool:
    """Does a tracer write the ops down?"""
    tracing = sys.modules.get("flambeau.fx.experimental._proxy_mode")
    return tracing is not None and tracing.get_proxy_mode() is not None


def _without_writes(func: Any, copies_views: bool, args: Any, kwargs: Any) -> Any:
    """`func` of functional tensors: what it wrote to arguments is copied to them at the end."""
    from flambeau._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
    mode, pairs = FunctionalTensorMode(), []
    mode._copies_views = copies_views

    def wrapped(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        pairs.append((x, FunctionalTensor.to_functional(x)))
        return pairs[-1][1]
    given = tree_map(wrapped, (args, kwargs))
    with mode:
        found = func(*given[0], **given[1])
    result = tree_map(lambda x: x._current() if isinstance(x, FunctionalTensor) else x, found)
    for original, functional in pairs:
        if functional._current() is not original:
            original.copy_(functional.elem)
    return result
