"""Storages: the memory that tensors look at.

An `UntypedStorage` is a row of bytes, a `TypedStorage` the same memory as a row of numbers. All
tensors that are views of each other give the same `UntypedStorage` object:

    >>> import flambeau
    >>> x = flambeau.arange(4.0)
    >>> x[2:].untyped_storage() is x.untyped_storage(), x.untyped_storage().nbytes()
    (True, 16)
"""

from __future__ import annotations

import io
from typing import Any

import flambeau
from flambeau._support.own_methods import adopt
from flambeau._support.settings import warn_once
from flambeau.storage.base import TYPED_STORAGES
from flambeau.storage.checks import check_typed_storage
from flambeau.storage.typed import LEGACY_NAMES, TypedStorage, converted, element_type, elements_of
from flambeau.storage.untyped import (
    SharedArray,
    StorageBase,
    UntypedStorage,
    _storages,
    check_size,
    dense_bytes,
    described,
    set_data,
    storage_of,
)


class _LegacyMeta(type):
    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return (type(instance) is TypedStorage and instance.device.type == "cpu"
                and instance.dtype is cls.dtype)


class _LegacyStorage(TypedStorage, metaclass=_LegacyMeta):
    """`FloatStorage` and its kind: constructors of typed storages of one dtype."""

    __slots__ = ()

    def __new__(cls, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None,
                device: Any = None, _internal: bool = False) -> Any:
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        check_typed_storage(f"<class 'torch.{cls.__name__}'>.__new__", args, wrap_storage, dtype,
                            device, UntypedStorage)
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)

    __new__.__qualname__ = "TypedStorage.__new__"       # Python's own errors cite it

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        if kwargs.get("dtype") is not None:
            raise RuntimeError("from_buffer: 'dtype' can only be specified in "
                               "UntypedStorage.from_buffer and TypedStorage.from_buffer")
        return TypedStorage.from_buffer(*args, **kwargs | {"dtype": cls.dtype})


def _legacy_class(name: str, dtype_name: str) -> type:
    dtype = getattr(flambeau, dtype_name)
    return _LegacyMeta(name, (_LegacyStorage,), {"__slots__": (), "dtype": dtype, "_dtype": dtype,
                                                 "__module__": flambeau.__name__})


DoubleStorage = _legacy_class("DoubleStorage", "float64")
FloatStorage = _legacy_class("FloatStorage", "float32")
HalfStorage = _legacy_class("HalfStorage", "float16")
BFloat16Storage = _legacy_class("BFloat16Storage", "bfloat16")
LongStorage = _legacy_class("LongStorage", "int64")
IntStorage = _legacy_class("IntStorage", "int32")
ShortStorage = _legacy_class("ShortStorage", "int16")
CharStorage = _legacy_class("CharStorage", "int8")
ByteStorage = _legacy_class("ByteStorage", "uint8")
BoolStorage = _legacy_class("BoolStorage", "bool")
ComplexFloatStorage = _legacy_class("ComplexFloatStorage", "complex64")
ComplexDoubleStorage = _legacy_class("ComplexDoubleStorage", "complex128")
QUInt8Storage, QInt8Storage, QInt32Storage, QUInt4x2Storage, QUInt2x4Storage = (
    _legacy_class(LEGACY_NAMES[name], name)
    for name in ("quint8", "qint8", "qint32", "quint4x2", "quint2x4"))


_storage_classes = {UntypedStorage, TypedStorage, *[globals()[n] for n in LEGACY_NAMES.values()]}


def old_storage_of(tensor: Any) -> TypedStorage:
    """`Tensor.storage()`, which warns once."""
    warn_once(TYPED_STORAGES)
    return tensor._typed_storage()


def is_storage(obj: Any, /) -> bool:
    """Is this a storage object?"""
    return isinstance(obj, (UntypedStorage, TypedStorage))


def _load_from_bytes(b: bytes) -> Any:
    """What a pickled storage was made of."""
    return flambeau.load(io.BytesIO(b), weights_only=False)


def __getattr__(name: str) -> Any:
    """Small functions that few ask for."""
    from flambeau._serialization import storage_names as _storage_names
    if name in vars(_storage_names) and name[:2] != "__":
        return getattr(_storage_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

adopt(globals(), "storage.")

__all__ = ["TypedStorage", "UntypedStorage"]
