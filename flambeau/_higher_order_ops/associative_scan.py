"""All partial results of an associative function, in logarithmically many steps."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.shapes import wrap_dim
from flambeau.utils import _pytree

__all__ = ["associative_scan"]

Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int,
                     reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """`x0`, `combine_fn(x0, x1)`, `combine_fn(combine_fn(x0, x1), x2)` … along `dim`.

    `xs` is a tensor or a nest of tensors of equal extents along `dim`; `combine_fn` takes and gives
    nests like it, and must treat the elements along `dim` each for itself. "pointwise" is for
    devices other than the CPU; use `combine_mode="generic"`.

    >>> import flambeau
    >>> associative_scan(flambeau.mul, flambeau.tensor([1.0, 2.0, 3.0]), 0, combine_mode="generic")
    tensor([1., 2., 6.])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got "
                         f"{combine_mode}")
    leaves, spec = _pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError(f"xs leaves must be tensors, at least one, but got {xs}")
    if combine_mode == "pointwise" and any(x.device.type == "cpu" for x in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or "
                         "XPU")
    dim = wrap_dim(dim, leaves[0].ndim)
    if any(x.shape[dim] != leaves[0].shape[dim] for x in leaves):
        raise ValueError("All xs leaves must have the same extent along the scanned dimension")

    def combined(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        a, b = (_pytree.tree_unflatten([x.movedim(0, dim) for x in side], spec)
                for side in (left, right))
        found, shape = _pytree.tree_flatten(combine_fn(a, b))
        if shape != spec:
            raise AssertionError(f"Combine_fn received a nest like {spec} and returned one like "
                                 f"{shape}")
        return [x.movedim(dim, 0) for x in found]

    rows = [x.movedim(dim, 0) for x in leaves]
    if reverse:
        rows = [x.flip(0) for x in rows]
    rows = _partial(combined, rows)
    if reverse:
        rows = [x.flip(0) for x in rows]
    return _pytree.tree_unflatten([x.movedim(0, dim) for x in rows], spec)


def _partial(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """Neighbours are combined, and their partial results, half as many, give every second one; the
    others need one element more."""
    count = len(xs[0])
    if count < 2:
        return xs
    pairs = combine([x[:count - 1:2] for x in xs], [x[1::2] for x in xs])
    second = _partial(combine, pairs)
    if count == 2:
        return [flambeau.cat([x[:1], s]) for x, s in zip(xs, second)]
    before = [s[:(count - 1) // 2] for s in second]
    third = combine(before, [x[2::2] for x in xs])
    return [_interleaved(flambeau.cat([x[:1], t]), s) for x, t, s in zip(xs, third, second)]


def _interleaved(first: Tensor, second: Tensor) -> Tensor:
    """Elements of both in turn; `first` may have one more."""
    pairs = flambeau.stack([first[:len(second)], second], 1).flatten(0, 1)
    return flambeau.cat([pairs, first[len(second):]])
