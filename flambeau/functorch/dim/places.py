"""Indexing with dimensions: which of them stand for which positions."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.functorch.dim.bound import (
    Dim,
    DimensionBindError,
    DimList,
    _Tensor,
    has,
    leading,
    run,
    united,
    with_levels,
)

_ALL = slice(None)


def _dims_of(item: Any) -> tuple[Any, ...] | None:
    """The dimensions that one entry of an index stands for; None if it is none."""
    if isinstance(item, Dim):
        return (item,)
    if isinstance(item, (tuple, list)) and item and all(isinstance(d, Dim) for d in item):
        return tuple(item)
    return None


def _entries(item: Any, ndim: int) -> list[Any]:
    """The entries of an index, with `...` and lists of dimensions written out."""
    if isinstance(item, list) and any(isinstance(d, (_Tensor, DimList)) for d in item):
        item = tuple(item)
    entries = list(item) if isinstance(item, tuple) else [item]
    open_lists = [d for d in entries if isinstance(d, DimList) and not d.is_bound]
    if len(open_lists) + sum(e is Ellipsis for e in entries) > 1:
        raise DimensionBindError(
            "at most one ... or unbound dimension list can exist in an index")
    used = sum(len(e) if isinstance(e, DimList) and e.is_bound else _consumed(e) for e in entries)
    if used > ndim:
        raise ValueError(f"at least {used} indices were supplied but the tensor only has {ndim} "
                         "dimensions")
    if open_lists:
        open_lists[0].bind_len(ndim - used)
        used = ndim
    written: list[Any] = []
    for entry in entries:
        if isinstance(entry, DimList):
            written += list(entry)
        elif entry is Ellipsis:
            written += [_ALL] * (ndim - used)
            used = ndim
        else:
            written.append(entry)
    return written + [_ALL] * (ndim - used)


def _consumed(entry: Any) -> int:
    """The number of positions that an entry stands for."""
    if entry is None or entry is Ellipsis or isinstance(entry, DimList):
        return 0
    if isinstance(entry, flambeau.Tensor) and entry.dtype in (flambeau.bool, flambeau.uint8):
        return entry.ndim
    return 1


def _sizes(pack: tuple[Any, ...], size: int) -> list[int]:
    """The sizes of dimensions that stand for one of `size` together; one of them may be open."""
    open_dims = [d for d in pack if not d.is_bound]
    if len(open_dims) > 1:
        raise DimensionBindError("cannot infer the sizes of two dimensions at once "
                                 f"{open_dims[0]} and {open_dims[1]}")
    known = 1
    for d in pack:
        known *= d.size if d.is_bound else 1
    if open_dims:
        if known == 0 or size % known:
            raise DimensionBindError(f"inferred dimension does not evenly fit into larger "
                                     f"dimension: {size} vs {pack}")
        open_dims[0].size = size // known
    elif known != size:
        if len(pack) == 1:
            pack[0].size = size                         # raises
        raise DimensionBindError(f"Dimension sizes to do not match ({size} != {known}) when "
                                 f"matching dimension pack {pack}")
    return [d.size for d in pack]


def _bind(tensor: flambeau.Tensor, levels: list[Any], entries: list[Any]
          ) -> tuple[flambeau.Tensor, list[Any], list[Any]]:
    """Put dimensions where entries of an index name them: the tensor, what its dimensions are, and
    the entries that are left, with `:` where a dimension stands.

    `levels` has None for each position; a bound dimension's place in the tensor stays.
    """
    positions = iter([p for p, d in enumerate(levels) if d is None])
    shape: list[int] = []
    names: list[Any] = []
    left: list[Any] = []
    done = 0
    for entry in entries:
        dims = _dims_of(entry)
        if _consumed(entry) != 1:
            left.append(entry)
            for _ in range(_consumed(entry)):
                next(positions)
            continue
        place = next(positions)
        while done < place:
            shape.append(tensor.shape[done])
            names.append(levels[done])
            done += 1
        if dims is None:
            left.append(entry)
            shape.append(tensor.shape[place])
            names.append(None)
        else:
            shape += _sizes(dims, tensor.shape[place])
            names += dims
        done = place + 1
    shape += tensor.shape[done:]
    names += levels[done:]
    tensor = tensor.reshape(shape) if tuple(shape) != tuple(tensor.shape) else tensor
    return *_diagonals(tensor, names), left


def _diagonals(tensor: flambeau.Tensor, names: list[Any]) -> tuple[flambeau.Tensor, list[Any]]:
    """Where a dimension is named twice, the elements with the same index in both places."""
    place = 0
    while place < len(names):
        name = names[place]
        twin = next((p for p in range(place + 1, len(names)) if names[p] is name), None)
        if name is None or twin is None:
            place += 1
            continue
        tensor = tensor.diagonal(0, place, twin).movedim(-1, place)
        names = names[:twin] + names[twin + 1:]
    return tensor, names


def get(self: Any, item: Any) -> Any:
    """`self[item]`, where dimensions are among the entries."""
    is_bound = isinstance(self, _Tensor)
    levels = self._get_levels() if is_bound else [None] * self.ndim
    tensor = self._get_tensor() if is_bound else self
    entries = _entries(item, sum(d is None for d in levels))
    tensor, names, left = _bind(tensor, levels, entries)
    plain = all(entry is None or isinstance(entry, (int, slice)) for entry in left)
    if plain:
        return _sliced(tensor, names, left)
    bound = with_levels(tensor, names)
    if all(isinstance(entry, slice) and entry == _ALL for entry in left):
        return bound
    return run(flambeau.Tensor.__getitem__, (bound, tuple(left)), {})


def _sliced(tensor: flambeau.Tensor, names: list[Any], left: list[Any]) -> Any:
    """Integers, slices and None at the positions between bound dimensions."""
    entries: list[Any] = []
    kept: list[Any] = []
    rest = iter(left)
    for name in names:
        if name is not None:
            entries.append(_ALL)
            kept.append(name)
            continue
        entry = next(rest)
        while entry is None:
            entries.append(None)
            kept.append(None)
            entry = next(rest)
        entries.append(entry)
        if isinstance(entry, slice):
            kept.append(None)
    for entry in rest:
        entries.append(entry)
        kept.append(None)
    return with_levels(tensor[tuple(entries)], kept)


def write(self: Any, item: Any, value: Any) -> None:
    """`self[item] = value`, where dimensions are among the entries."""
    is_bound = isinstance(self, _Tensor)
    levels = self._get_levels() if is_bound else [None] * self.ndim
    entries = _entries(item, sum(d is None for d in levels))
    if not any(isinstance(e, _Tensor) and not isinstance(e, Dim) for e in entries):
        place = get(self, item)
        dims = place.dims if isinstance(place, _Tensor) else ()
        target = leading(place, dims) if dims else place
        target.copy_(_ordered(value, dims, target))
        return
    if is_bound:
        raise NotImplementedError("writing to a tensor with bound dimensions at places that "
                                  "another such tensor gives")
    dims = tuple(united([e] if isinstance(e, Dim) else e.dims
                        for e in entries if isinstance(e, _Tensor)))
    for e, size in zip(entries, self.shape):
        if isinstance(e, Dim):
            e.size = size
    places = tuple([_spread(e, dims) if isinstance(e, _Tensor) else e for e in entries])
    self[places] = _ordered(value, dims, None)


def _spread(value: Any, dims: tuple[Any, ...]) -> flambeau.Tensor:
    """A tensor with `dims` in front, of size 1 along those that the value does not have."""
    own = [d for d in dims if has(value.dims, d)]
    tensor = leading(value, own)
    shape = [d.size if has(own, d) else 1 for d in dims]
    return tensor.reshape(*shape, *tensor.shape[len(own):])


def _ordered(value: Any, dims: tuple[Any, ...], like: Any) -> Any:
    """A value for each index along `dims`, in that order."""
    if not isinstance(value, _Tensor):
        return value if like is None or isinstance(value, flambeau.Tensor) \
            else flambeau.as_tensor(value, dtype=like.dtype)
    for d in value.dims:
        if not has(dims, d):
            raise DimensionBindError(f"the value has dimension {d}, which the place has not")
    return _spread(value, dims)


def index(self: Any, positions: Any, dims: Any) -> Any:
    """The tensor with dimensions in place of some positions: `index(x, (0, 2), (i, k))`.

    A tuple of dimensions in place of one position takes it apart.
    """
    places = [positions] if isinstance(positions, int) else list(positions)
    entries = list(dims) if isinstance(positions, (tuple, list)) or (
        isinstance(dims, tuple) and len(dims) == 1) else [dims]
    if len(places) != len(entries):
        raise ValueError(f"index expects as many dimensions as positions, got {len(entries)} and "
                         f"{len(places)}")
    item: list[Any] = [_ALL] * self.ndim
    for place, entry in zip(places, entries):
        item[place] = entry
    return get(self, tuple(item))


_Tensor.__getitem__, _Tensor.__setitem__, _Tensor.index = get, write, index

__all__ = ["get", "index", "write"]
