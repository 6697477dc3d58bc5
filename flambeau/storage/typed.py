"""Storages as rows of numbers of one dtype."""
from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from operator import index
from typing import Any

import numpy as np

import flambeau
from flambeau._support.own_methods import copy_inherited, shown_as
from flambeau._support.signatures import extended
from flambeau.core.promotion import type_name
from flambeau.core.tensor import wrap
from flambeau.kernels import set_error_name
from flambeau.storage.base import InMainMemory
from flambeau.storage.checks import check_typed_storage
from flambeau.storage.untyped import UntypedStorage, described, storage_of


def elements_of(storage: Any, dtype: Any) -> np.ndarray:
    """The memory of a storage as elements of a dtype, which a typed one must have."""
    if dtype is None:
        dtype = flambeau.get_default_dtype() if isinstance(storage, TypedStorage) \
            else flambeau.int64                 # bytes are integers
    if isinstance(storage, TypedStorage) and storage.dtype is not dtype:
        raise RuntimeError(f"Expected a Storage of type {type_name(dtype)} or an UntypedStorage, "
                           f"but got {type_name(storage.dtype)}")
    return flambeau.empty(0, dtype=dtype).set_(storage)._array


def element_type(dtype: Any) -> Any:
    """NumPy's type for the elements; quantised ones are seen as their integers."""
    if dtype.kind == "quantized":
        from flambeau.ops.quantized.tensors import HELD
        return HELD[dtype]
    return dtype.numpy


@set_error_name("torch.storage.TypedStorage")
@copy_inherited("get_device", "resizable", "cuda", "hpu", "is_pinned")
class TypedStorage(InMainMemory):
    """A row of numbers of one dtype: `TypedStorage([1.0, 2.0], dtype=flambeau.float32)`."""

    __slots__ = ("__dict__", "__weakref__", "_dtype", "_untyped_storage")
    __signature__ = extended(lambda *args, wrap_storage=None, dtype=None, device=None,
                             _internal=False: None)

    @shown_as("TypedStorage.__new__")
    def __init__(self, *args: Any, device: Any = None, dtype: Any = None,
                 wrap_storage: UntypedStorage | None = None, _internal: bool = False):
        check_typed_storage("TypedStorage.__init__", args, wrap_storage, dtype, device,
                            UntypedStorage)
        self._dtype = flambeau.get_default_dtype() if dtype is None else dtype
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
            return
        data = args[0] if args else 0
        if isinstance(data, (UntypedStorage, TypedStorage)):
            self._untyped_storage = data.untyped()
        elif isinstance(data, int) or (device is not None
                                       and flambeau.device(device).type == "meta"):
            count = data if isinstance(data, int) else len(data)
            self._untyped_storage = UntypedStorage(count * self._dtype.itemsize, device=device)
        else:
            self._untyped_storage = storage_of(wrap(np.array(data).astype(
                element_type(self._dtype))))

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self._dtype

    @property
    def device(self) -> Any:
        """Where the bytes are."""
        return self._untyped_storage.device

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped_storage

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def _numbers(self) -> np.ndarray:
        data = self._untyped_storage._readable()
        return np.ndarray((len(self),), element_type(self._dtype), data)

    def nbytes(self) -> int:
        """How many bytes it has."""
        return self._untyped_storage.nbytes()

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self._dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def element_size(self) -> int:
        """The bytes of one element."""
        return self._dtype.itemsize

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    def is_shared(self) -> bool:
        """Can other processes map its memory?"""
        return self._untyped_storage.is_shared()

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return wrap(self._numbers()[self._checked(idx)]).item()

    def __setitem__(self, idx: Any, value: Any) -> None:
        place = idx if isinstance(idx, slice) else self._checked(idx)
        self._untyped_storage._writable()
        self._numbers()[place] = value

    def _checked(self, index: Any) -> int:
        if not isinstance(index, int) or isinstance(index, bool):
            kind = TypeError if isinstance(index, bool) else RuntimeError
            raise kind(f"can't index a <class 'torch.storage.TypedStorage'> with {type(index)}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return wrap(self._numbers()).tolist()

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to `value`."""
        if self.device.type != "meta":
            self._untyped_storage._writable()
            self._numbers()[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the bytes of another storage."""
        self._untyped_storage.copy_(source)
        return self

    def _share_fd_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._untyped_storage._share_fd_cpu_(*args, **kwargs)

    def _share_filename_cpu_(self, *args: Any, **kwargs: Any) -> Any:
        return self._untyped_storage._share_filename_cpu_(*args, **kwargs)

    def _write_file(self, *args: Any, **kwargs: Any) -> None:
        self._untyped_storage._write_file(*args, **kwargs)

    def _wrapped(self, storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self._dtype)

    def clone(self) -> TypedStorage:
        """A copy in memory of its own, of the same element type."""
        return self._wrapped(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return self._wrapped(copy.deepcopy(self._untyped_storage, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        file = io.BytesIO()             # a file of its own
        flambeau.save(self, file, _use_new_zipfile_serialization=False)
        return flambeau.storage._load_from_bytes, (file.getvalue(),)

    def resize_(self, size: int) -> TypedStorage:
        """Change the number of elements; those that stay keep their values."""
        self._untyped_storage.resize_(size * self._dtype.itemsize)
        return self

    def cpu(self) -> TypedStorage:
        """This storage if it is on the CPU, else a copy that is."""
        return self.to(device="cpu")

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage if it is on `device` (`cpu`, `meta`), else a copy that is."""
        moved = self._untyped_storage.to(device=device)
        return self if moved is self._untyped_storage else self._wrapped(moved)

    def pin_memory(self, device: Any = None) -> Any:
        """Raises NotImplementedError: without an accelerator no memory is pinned."""
        return self._wrapped(self._untyped_storage.pin_memory(device))

    @property
    def filename(self) -> str | None:
        """The file that is mapped, if one is."""
        return self._untyped_storage.filename

    def share_memory_(self) -> TypedStorage:
        """Move the numbers to memory that other processes can map."""
        self._untyped_storage.share_memory_()
        return self

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its type, or its numbers converted to another storage type."""
        return f"torch.{self.pickle_storage_type()}" if dtype is None else converted(self, dtype)

    def pickle_storage_type(self) -> str:
        """The name that files give to storages of this dtype."""
        try:
            return LEGACY_NAMES[self._dtype.name]
        except KeyError:
            raise KeyError(f"dtype {self._dtype} is not recognized") from None

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Elements copied from an object that shows its bytes: see `UntypedStorage.from_buffer`."""
        dtype = kwargs.pop("dtype", None)
        dtype = flambeau.get_default_dtype() if dtype is None else dtype
        return TypedStorage(wrap_storage=UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs),
                            dtype=dtype)

    @classmethod
    def from_file(cls, filename: str, shared: bool, size: int) -> TypedStorage:
        """A storage on the numbers in a file; writes reach the file if `shared`."""
        dtype = flambeau.get_default_dtype()
        return TypedStorage(
            wrap_storage=UntypedStorage.from_file(filename, index(shared),
                                                  index(size) * dtype.itemsize),
            dtype=dtype)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, TypedStorage) and self._dtype is other._dtype
                and self._untyped_storage is other._untyped_storage)

    def __hash__(self) -> int:
        return hash((self._dtype, id(self._untyped_storage)))

    def __repr__(self) -> str:
        return described(self, f"TypedStorage(dtype={self._dtype}, device={self.device})")

    __str__ = __repr__


def converted(storage: Any, target: Any) -> TypedStorage:
    """A typed copy of a storage, its numbers (or bytes) converted."""
    if isinstance(target, str):
        target = getattr(flambeau, target.removeprefix("torch."))
    numbers = storage._readable() if isinstance(storage, UntypedStorage) else storage._numbers()
    dtype = getattr(target, "dtype", target)
    return TypedStorage(wrap_storage=storage_of(wrap(numbers.astype(dtype.numpy))), dtype=dtype)


def _conversion(dtype_name: str, shown: str) -> Callable[[Any], TypedStorage]:
    @shown_as(shown)
    def convert(self: Any) -> TypedStorage:
        return converted(self, getattr(flambeau, dtype_name))

    convert.__doc__ = f"A copy with its elements converted to {dtype_name}."
    return convert


for _name in ("size", "nbytes", "element_size", "data_ptr", "is_shared", "share_memory_", "resize_",
              "pickle_storage_type", "from_buffer"):    # the names that give no warning in PyTorch
    setattr(TypedStorage, f"_{_name}", vars(TypedStorage)[_name])
for _name in ("getitem", "setitem", "deepcopy"):
    setattr(TypedStorage, f"_{_name}", vars(TypedStorage)[f"__{_name}__"])


LEGACY_NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage", "int64": "LongStorage", "int32": "IntStorage",
    "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
    "quint8": "QUInt8Storage", "qint8": "QInt8Storage", "qint32": "QInt32Storage",
    "quint4x2": "QUInt4x2Storage", "quint2x4": "QUInt2x4Storage",
}


for _name, _dtype_name in {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "complex_float": "complex64", "complex_double": "complex128",
    **{name: name for name in ("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz",
                               "float8_e4m3fnuz")},
}.items():
    setattr(UntypedStorage, _name, _conversion(_dtype_name, f"_StorageBase.{_name}"))
    setattr(TypedStorage, _name, _conversion(_dtype_name, f"TypedStorage.{_name}"))
