"""What an index means: its items in one form, and the errors of those that mean nothing."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau._support.settings import warn_user
from flambeau.core import dtypes
from flambeau.core.calling import overrides
from flambeau.core.tensor import Tensor, plain_types
from flambeau.ops.factory.from_data import array_of
from flambeau.ops.view.shape import unsqueeze
from flambeau.schema.errors import type_name as type_name_of

_PLACES = frozenset({int, slice, type(None), type(Ellipsis), bool})     # which override nothing


def overriding(index: Any, *tensors: Any) -> list[Any]:
    """The arguments of an indexing that override it; an index may hold tuples of tuples."""
    args = (*tensors, index)
    if (type(index) in _PLACES and all(type(t) in plain_types for t in tensors)) \
            or not overrides.needs_override(args, None, -1):
        return []
    return overrides.overriding_args(args, None, -1) or [tensors[0]]


def parse(self: Tensor, index: Any) -> tuple[Any, Any]:
    """Split an index into its basic part (None if that changes nothing) and its tensors, one or
    None for each dimension of the view that the basic part gives (None if there are none).

    Items are looked at from left to right: the first that is wrong is what the error is about."""
    items = list(index) if type(index) is tuple else _as_items(index)
    for i, item in enumerate(items):
        if type(item) is list and item and type(item[0]) is list:
            items[i] = _one_item(item)            # a mask, perhaps
    shape = self._array.shape
    ndim = len(shape)
    if type(index) is str and len(index) > ndim:            # each letter is an item
        raise _too_many(index, ndim)
    left = ndim - sum([_covered_dims(item)
                       for item in items])     # the dimensions that `...` stands for
    if left < 0:
        raise _too_many(index, ndim)
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    basic: list[Any] = []
    tensors: list[Any] = []
    changed, dim = False, 0
    for position, item in enumerate(items):
        item = _one_item(item)
        if item is Ellipsis:
            basic += [slice(None)] * left
            tensors += [None] * left
            dim, left = dim + left, 0           # a second `...` stands for nothing
        elif type(item) is int:
            if not -shape[dim] <= item < shape[dim]:
                if not -2**63 <= item < 2**63:
                    raise ValueError("Overflow when unpacking long long")
                raise IndexError(f"index {item} is out of bounds for dimension {position} with "
                                 f"size {shape[dim]}")
            basic.append(item)
            dim, changed = dim + 1, True
        elif item is None:
            basic.append(None)
            tensors.append(None)
            changed = True
        elif type(item) is slice:
            basic.append(item)
            tensors.append(None)
            changed = changed or not is_whole(item, shape[dim])
            dim += 1
        elif not item._array.ndim and item._array.dtype.kind == "b":    # a new dimension of 1 or 0
            basic.append(None)
            tensors.append(_bool_as_places(item))
            changed = True
        else:
            covered = _covered_dims(item)
            basic += [slice(None)] * covered
            tensors += [item] + ["covered"] * (covered - 1)
            dim += covered
    advanced = None
    if any(isinstance(t, Tensor) for t in tensors):
        advanced = tensors
    # one more `...` keeps 0-d results arrays
    return ((*basic, Ellipsis) if changed or advanced is None else None), advanced


def is_whole(item: slice, n: int) -> bool:
    """Is a slice that of all `n` elements, as it is written?"""
    return (item.start or 0) == 0 and (item.stop is None or item.stop >= n) and item.step in (
        None, 1)


def _covered_dims(item: Any) -> int:
    """How many dimensions an item of an index stands for."""
    if item is None or item is Ellipsis or type(item) is bool:
        return 0
    if isinstance(item, Tensor):
        d = item._array.dtype
        return item._array.ndim if d.kind == "b" or d == np.uint8 else 1
    if type(item) is np.ndarray and item.dtype.kind == "b":
        return item.ndim
    return 1


def _too_many(index: Any, ndim: int) -> IndexError:
    if not ndim and type(index) is slice:
        _one_item(index)
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if not ndim and not isinstance(index, tuple | list | str | Tensor) and hasattr(
            index, "__index__"):
        at = index.__index__()
        return IndexError(f"index {at} is out of bounds for dimension 0 with size 0" if at else
                          "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                          "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
    return IndexError(f"too many indices for tensor of dimension {ndim}")


def _bool_as_places(item: Tensor) -> Tensor:
    """A boolean as the list of places that it names in a dimension of 1."""
    if type(item) not in plain_types or item.is_meta:
        return unsqueeze(item, 0)
    return Tensor_of(np.zeros(int(bool(item._array)), np.int64))


def _as_items(index: Any) -> list[Any]:
    """A list is a tuple of indices if it is short and holds anything but numbers, as NumPy once
    had it."""
    if isinstance(index, (list, range, str)) and len(index) < 32 and any(
            i is None or i is Ellipsis or isinstance(i, (Tensor, Sequence, slice, np.ndarray))
            for i in index):
        warn_user("Using a non-tuple sequence for multidimensional indexing is deprecated and will "
                  "be changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 "
                  "this will be interpreted as tensor index, x[torch.tensor(seq)], which will "
                  "result either in an error or a different result")
        return list(index)
    return [index]


def _one_item(item: Any) -> Any:
    """One item of an index as int, slice, None, Ellipsis or a tensor of integers or booleans."""
    kind = type(item)
    if kind is int or item is None or item is Ellipsis:
        return item
    if kind is slice:
        try:
            start, stop, step = (None if v is None else v.__index__()
                                 for v in (item.start, item.stop, item.step))
        except AttributeError:
            raise TypeError("slice indices must be integers or None or have an __index__ "
                            "method") from None
        if step is not None and step <= 0:
            raise ValueError("step must be greater than zero" if step else
                             "slice step cannot be zero")
        return slice(start, stop, step)
    if kind is bool:
        return Tensor_of(np.array(item))
    if isinstance(item, Tensor):
        d = item._array.dtype
        if (d.kind not in "bi" and d != np.uint8) or (
                item._array.ndim and d.kind == "i" and d.itemsize < 4):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if d == np.uint8:
            warn_user("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                      "torch.bool instead.")
            return item.to(dtypes.bool_)
        if not item._array.ndim and d.kind != "b" and type(item) in plain_types:
            return int(item._array)
        return item
    if isinstance(item, (list, tuple, range, np.ndarray)):
        if isinstance(item, list) and item and item[0] is item:
            raise TypeError("new(): self-referential lists are incompatible")
        array = array_of(list(item) if isinstance(item, range) else item)
        if array.dtype.kind == "f":
            array = array.astype(np.int64)      # numbers of a list are places, whatever their type
        return _one_item(Tensor_of(array))
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(kind, "__index__"):
        return int(item.__index__())
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                     f"Variables are valid indices (got {type_name_of(item)})")


def Tensor_of(array: np.ndarray) -> Tensor:
    from flambeau.core.tensor import wrap
    return wrap(array)


# ---- methods of C --------------------------------------------------------------------------------


def as_slot(method: Any) -> Any:
    """The method as PyTorch has it, in a slot of C, where arguments have no names."""
    name, count = method.__name__, method.__code__.co_argcount - 1

    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        if len(args) == count + 1 and not kwargs and isinstance(args[0], Tensor):
            return method(*args)
        if not args:
            raise TypeError(f"descriptor '{name}' of 'torch._C.TensorBase' object needs an "
                            "argument")
        if not isinstance(args[0], Tensor):
            raise TypeError(f"descriptor '{name}' requires a 'torch._C.TensorBase' object but "
                            f"received a '{type(args[0]).__name__}'")
        if kwargs:
            raise TypeError(f"wrapper {name}() takes no keyword arguments")
        expected = "expected 1 argument" if count == 1 else f" expected {count} arguments"
        raise TypeError(f"{expected}, got {len(args) - 1}")
    return called
