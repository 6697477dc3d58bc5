"""The bytes of a storage that come from a sequence, a buffer or a file."""
from __future__ import annotations

import os
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

import flambeau
from flambeau.schema.errors import type_name

_Parameters = dict[str, tuple[Callable[[Any], Any], Any]]


def unpacked(parameters: _Parameters, args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> dict[str, Any]:
    """The values of a C function's parameters, the first of which is required; each has a
    conversion and a default.

    >>> unpacked({"name": (str, ""), "size": (index, 0)}, ("x",), {})
    {'name': 'x', 'size': 0}
    """
    names = list(parameters)
    count = len(args) + len(kwargs)
    if count > len(names):
        raise TypeError(f"function takes at most {len(names)} arguments ({count} given)")
    given = dict(zip(names, args, strict=False)) | kwargs
    if names[0] not in given:
        raise TypeError(f"function missing required argument '{names[0]}' (pos 1)")
    values = {}
    for at, (name, (convert, default)) in enumerate(parameters.items(), 1):
        if name in given and convert is str and not isinstance(given[name], str):
            kind = "None" if given[name] is None else type_name(given[name])
            raise TypeError(f"argument {at} must be str, not {kind}")
        values[name] = convert(given[name]) if name in given else default
    for name in kwargs:
        if name not in parameters:
            raise TypeError(f"'{name}' is an invalid keyword argument for this function")
    return values


def bytes_of(data: Any) -> list[int]:
    """The elements of a sequence as bytes."""
    if not hasattr(data, "__len__") or isinstance(data, flambeau.Tensor):
        raise RuntimeError("torch.UntypedStorage(): Expected a sequence type, but got "
                           f"{type_name(data)}")
    for item in data:
        if not isinstance(item, int):
            raise RuntimeError("torch.UntypedStorage(): tried to construct a storage from a "
                               f"sequence ({type(data).__name__}), but one of the items was of "
                               f"type {type(item).__name__} instead of int")
    return [item % 256 for item in data]


def _same(value: Any) -> Any:
    return value


_BUFFER: _Parameters = {"buffer": (_same, None), "byte_order": (str, None),
                        "count": (index, -1), "offset": (index, 0), "dtype": (_same, None)}
_FILE: _Parameters = {"filename": (str, None), "shared": (index, 0),
                      "nbytes": (index, 0)}


def of_buffer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[np.ndarray, Any, str]:
    """The numbers in a buffer, copied, their dtype and the order of their bytes."""
    buffer, order, count, offset, dtype = unpacked(_BUFFER, args, kwargs).values()
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if not isinstance(dtype, flambeau.dtype):
        raise RuntimeError("argument 'dtype' must be of type torch.dtype")
    size = dtype.itemsize
    if order is None and size > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    held = np.frombuffer(buffer, np.uint8)
    length = held.size
    if offset and not 0 <= offset < length:
        # PyTorch's text has the two numbers in each other's places.
        raise ValueError("offset must be non-negative and no greater than buffer length "
                         f"({offset}) , but got {length}")
    if count < 0 and (length - offset) % size:
        raise ValueError(f"buffer size ({length}) must be a multiple of element size ({size})")
    if offset + count * size > length:
        raise ValueError(f"buffer has only {length - offset} elements after offset {offset}, but "
                         f"specified a size of {count}")
    if size > 1 and order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{order}' (expected 'big', 'little', or 'native')")
    values = held[offset:] if count < 0 else held[offset:offset + count * size]
    return values.copy().view(dtype.numpy), dtype, order if size > 1 else "native"


def of_file(args: tuple[Any, ...], kwargs: dict[str, Any]) -> np.ndarray:
    """The bytes of a file, mapped; writes reach the file if it is shared."""
    filename, shared, size = unpacked(_FILE, args, kwargs).values()
    if not size:                            # nothing is mapped, so no file is looked for
        return np.empty(0, np.uint8)
    try:
        with open(filename, "ab" if shared else "rb") as file:
            if shared:
                file.truncate(max(file.tell(), size))
            held = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in "
                           f"{'read-write' if shared else 'read-only'} mode: {error.strerror} "
                           f"({error.errno})") from None
    if held < size:
        raise RuntimeError(f"file <{filename}> size <{held}> is smaller than the required mapping "
                           f"size <{size}>")
    return np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(size,))
