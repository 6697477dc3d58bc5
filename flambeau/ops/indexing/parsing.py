"""What an index means: its items in one form, and the errors of those that mean nothing."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from flambeau.core import dtypes
from flambeau.core.tensor import Tensor, plain
from flambeau.ops.factory.from_data import array_of
from flambeau.ops.view.shape import unsqueeze
from flambeau.schema.errors import type_name as type_name_of


def explain(tensor: Tensor, index: Any, error: IndexError) -> IndexError:
    """NumPy's complaint about an index in torch's words."""
    shape = tensor._array.shape
    items = [int(i._array) if isinstance(i, Tensor) and not i._array.ndim
             and i._array.dtype.kind in "ui" else i
             for i in (index if isinstance(index, tuple) else (index,))]
    if not shape and len(items) == 1 and type(items[0]) is slice:
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if not shape and len(items) == 1 and type(items[0]) is int:
        return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                          "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number")
    count = 0
    for item in items:
        if item is None or item is Ellipsis or isinstance(item, bool):
            continue
        count += item.ndim if isinstance(item, Tensor) and item.dtype.kind == "b" else 1
    if count > len(shape):
        return IndexError(f"too many indices for tensor of dimension {len(shape)}")
    dim = new = 0                       # those of the tensor, and those that None adds
    for item in items:
        new += item is None
        if item is Ellipsis:
            dim += len(shape) - count
        elif item is not None and not isinstance(item, bool):
            if type(item) is int and not -shape[dim] <= item < shape[dim]:
                return IndexError(f"index {item} is out of bounds for dimension {dim + new} with "
                                  f"size {shape[dim]}")
            dim += item.ndim if isinstance(item, Tensor) and item.dtype.kind == "b" else 1
    return error


def parse(self: Tensor, index: Any) -> tuple[Any, Any]:
    """Split an index into its basic part (None if that changes nothing) and its tensors, one or
    None for each dimension of the view that the basic part gives (None if there are none)."""
    items = list(index) if type(index) is tuple else _as_items(index)
    ndim = self._array.ndim
    used = 0
    for i, item in enumerate(items):
        item = items[i] = _normal(item)
        if isinstance(item, Tensor):
            used += item._array.ndim if item._array.dtype.kind == "b" else 1
        elif item is not None and item is not Ellipsis:
            used += 1
    if used > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    basic: list[Any] = []
    tensors: list[Any] = []
    changed = False
    for item in items:
        if item is Ellipsis:
            basic += [slice(None)] * (ndim - used)
            tensors += [None] * (ndim - used)
            ndim = used                         # a second `...` stands for nothing
        elif type(item) is int:
            basic.append(item)
            changed = True
        elif item is None:
            basic.append(None)
            tensors.append(None)
            changed = True
        elif type(item) is slice:
            basic.append(item)
            tensors.append(None)
            changed = changed or item != slice(None)
        elif item._array.dtype.kind == "b":
            if not item._array.ndim:
                basic.append(None)
                changed = True
                tensors.append(unsqueeze(item, 0))
            else:
                basic += [slice(None)] * item._array.ndim
                tensors += [item] + ["covered"] * (item._array.ndim - 1)
        else:
            basic.append(slice(None))
            tensors.append(item)
    advanced = None
    if any(isinstance(t, Tensor) for t in tensors):
        advanced = tensors
    # one more `...` keeps 0-d results arrays
    return ((*basic, Ellipsis) if changed or advanced is None else None), advanced


def _as_items(index: Any) -> list[Any]:
    """A list is a tuple of indices if it is short and holds anything but numbers, as NumPy once
    had it."""
    if isinstance(index, (list, range)) and len(index) < 32 and any(
            i is None or i is Ellipsis or isinstance(i, (Tensor, Sequence, slice, np.ndarray))
            for i in index):
        warnings.warn("Using a non-tuple sequence for multidimensional indexing is deprecated and "
                      "will be changed; use x[tuple(seq)] instead of x[seq], which will be "
                      "interpreted as tensor index, x[torch.tensor(seq)]", UserWarning,
                      stacklevel=4)
        return list(index)
    return [index]


def _normal(item: Any) -> Any:
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
        if (d.kind not in "bi" and d != np.uint8) or (d.kind == "i" and d.itemsize < 4):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if d == np.uint8:
            warnings.warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                          "torch.bool instead.", UserWarning, stacklevel=4)
            return item.to(dtypes.bool_)
        if not item._array.ndim and d.kind != "b" and type(item) in plain:
            return int(item._array)
        return item
    if isinstance(item, (list, tuple, range, np.ndarray)):
        if isinstance(item, list) and item and item[0] is item:
            raise TypeError("new(): self-referential lists are incompatible")
        array = array_of(list(item) if isinstance(item, range) else item)
        if array.dtype.kind == "f":
            array = array.astype(np.int64)      # numbers of a list are places, whatever their type
        return _normal(Tensor_of(array))
    if isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(item, "__index__"):
        return int(item.__index__())
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                     f"Variables are valid indices (got {type_name_of(item)})")


def Tensor_of(array: np.ndarray) -> Tensor:
    from flambeau.core.tensor import wrap
    return wrap(array)
