"""A loop that carries values along a dimension and keeps what each step gives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.shapes import wrap_dim
from flambeau.utils import _pytree

__all__ = ["scan"]


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0,
         reverse: bool = False) -> tuple[Any, Any]:
    """`carry, y = combine_fn(carry, x)` for each `x` along `dim`: the last carry, and all `y`.

    `init` and `xs` are tensors or nests of tensors; the results `y` are stacked along `dim`.

    >>> import flambeau
    >>> scan(lambda carry, x: (carry + x, carry * x), flambeau.zeros(()), flambeau.ones(3))
    (tensor(3.), tensor([0., 1., 2.]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    carried, form = _pytree.tree_flatten(init)
    if not carried:
        raise RuntimeError("scan() operator requires init leaves.")
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves:
        return init, []
    for name, values in (("init", carried), ("xs", leaves)):
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"All {name} leaves must be a Tensor but got {value}")
    dim = wrap_dim(dim, leaves[0].ndim)
    extent = leaves[0].shape[dim]
    if extent == 0 or any(x.shape[dim] != extent for x in leaves):
        raise RuntimeError("All xs leaves must have the same extent along dim, and at least one")
    carry, kept, shape = init, [], None
    order = range(extent)
    for i in reversed(order) if reverse else order:
        step = combine_fn(carry, _pytree.tree_unflatten([x.select(dim, i) for x in leaves], spec))
        if not isinstance(step, tuple) or len(step) != 2:
            raise RuntimeError(f"combine_fn should return a tuple (carry, y), but got {step}")
        carry, y = step
        _check_carry(carry, carried, form)
        found, shape = _pytree.tree_flatten(y)
        kept.append(found)
    if reverse:
        kept.reverse()
    stacked = [flambeau.stack(values, min(dim, values[0].ndim)) for values in zip(*kept)]
    return carry, _pytree.tree_unflatten(stacked, shape)


def _check_carry(carry: Any, before: list[Tensor], form: Any) -> None:
    found, shape = _pytree.tree_flatten(carry)
    if shape != form or any(a.shape != b.shape or a.dtype != b.dtype
                            for a, b in zip(found, before)):
        raise RuntimeError("The carry that combine_fn returns should have the form, the shapes and "
                           "the types of init")
