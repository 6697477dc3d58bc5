"""Stacks, rows and pieces of tensors along dimensions that are objects."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau.functorch.dim.bound import Dim, DimensionBindError, _Tensor, has, run
from flambeau.functorch.dim.places import index

softmax = flambeau.nn.functional.softmax


def stack(tensors: Sequence[Any], new_dim: Any, dim: int = 0) -> Any:
    """Tensors one above another along a new dimension; an integer `new_dim` is a position.

    >>> from flambeau.functorch.dim import dims
    >>> i, j = dims()
    >>> stack([torch.zeros(2)[i], torch.ones(2)[i]], j).order(i, j)
    tensor([[0., 1.],
            [0., 1.]])
    """
    if isinstance(new_dim, int):
        return run(flambeau.stack, (list(tensors), new_dim), {})
    joined = run(flambeau.stack, (list(tensors), dim), {}) \
        if any(isinstance(t, _Tensor) for t in tensors) else flambeau.stack(list(tensors), dim)
    return index(joined, dim, new_dim)


def cat(tensors: Sequence[Any], dim: Any, new_dim: Any) -> Any:
    """Tensors one behind another along `dim`, a dimension or a position, which becomes `new_dim`.
    A tensor without that dimension is repeated along it."""
    if not isinstance(dim, Dim):
        joined = run(flambeau.cat, (list(tensors), dim), {}) \
            if any(isinstance(t, _Tensor) for t in tensors) else flambeau.cat(list(tensors), dim)
        return index(joined, dim, new_dim)
    pieces = [t.order(dim) if isinstance(t, _Tensor) and has(t.dims, dim)
              else run(_repeated, (t, dim.size), {}) if isinstance(t, _Tensor)
              else _repeated(t, dim.size) for t in tensors]
    joined = run(flambeau.cat, (pieces, 0), {}) if any(isinstance(p, _Tensor) for p in pieces) \
        else flambeau.cat(pieces, 0)
    return index(joined, 0, new_dim)


def _repeated(tensor: flambeau.Tensor, size: int) -> flambeau.Tensor:
    return tensor.expand(size, *tensor.shape)


def split(tensor: Any, split_size_or_sections: Any, dim: Any = None) -> Any:
    """The pieces of a tensor along a dimension or a position: of the sizes of the given dimensions,
    which they then have in its place. Dimensions without a size share what is left.

    >>> from flambeau.functorch.dim import dims
    >>> i, left, right = dims()
    >>> left.size = 1
    >>> [piece.order(d) for piece, d in
    ...  zip(split(torch.arange(3)[i], [left, right], i), (left, right))]
    [tensor([0]), tensor([1, 2])]
    """
    place = 0 if dim is None else dim
    parts = split_size_or_sections
    if not (isinstance(parts, (tuple, list)) and parts and isinstance(parts[0], Dim)):
        if isinstance(place, Dim):
            raise TypeError("when dim is specified as a Dim object, split sizes must also be "
                            "dimensions.")
        return run(flambeau.split, (tensor, parts, place), {})
    if isinstance(place, Dim):
        size, ordered = place.size, tensor.order(place)
        place = 0
    else:
        size, ordered = tensor.shape[place], tensor
    _share(parts, size)
    sizes = [d.size for d in parts]
    pieces = run(flambeau.split, (ordered, sizes, place), {}) \
        if isinstance(ordered, _Tensor) else ordered.split(sizes, place)
    return tuple([index(piece, place, d) for piece, d in zip(pieces, parts)])


def _share(parts: Sequence[Any], size: int) -> None:
    """Give the dimensions without a size equal shares of what the others leave."""
    left = size - sum(d.size for d in parts if d.is_bound)
    open_parts = [d for d in parts if not d.is_bound]
    if left < 0 or (left and not open_parts):
        raise DimensionBindError(f"sizes of target dimensions add up to {size - left} but the "
                                 f"source dimension has size {size}")
    share = -(-left // len(open_parts)) if open_parts else 0
    for d in open_parts:
        d.size = min(share, left)
        left -= d.size


_Tensor.split = split
