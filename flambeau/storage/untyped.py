"""Rows of bytes, one object for all tensors that are views of each other."""
from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau._support.c_functions import counted
from flambeau._support.own_methods import shown_as
from flambeau.core import copy_on_write
from flambeau.core.tensor import (
    array_offset,
    array_root,
    arrays_of,
    dense_memory,
    tensor_types,
    wrap,
)
from flambeau.kernels import set_error_name
from flambeau.ops.python.methods import copied_root
from flambeau.schema.arguments import bound
from flambeau.schema.errors import type_name
from flambeau.storage import sources
from flambeau.storage.base import InMainMemory, StorageBase

_in_c = partial(counted, owner="StorageBase")       # which defines these methods in PyTorch
set_data = vars(Tensor)["data"].fset

# id(root array) -> its storage. A storage keeps its root alive, so that an id is not used again.
_storages: WeakValueDictionary[int, UntypedStorage] = WeakValueDictionary()


def dense_bytes(root: np.ndarray) -> np.ndarray | None:
    """The memory of an array as bytes; None where the array leaves gaps in it."""
    ordered = dense_memory(root)
    return None if ordered is None else np.ndarray((root.nbytes,), np.uint8, ordered)


class SharedArray(np.ndarray):
    """Memory that other processes can map too: by a descriptor of its file, or by the file's name.

    `multiprocessing.reductions` makes them.
    """

    place: int | str
    process: int                        # which mapped it; of files with names


def check_size(size: int) -> None:
    """Raise, as PyTorch's allocator, for a number of bytes below 0."""
    if size < 0:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu("
                           f") seems to have been called with negative number: {size % 2 ** 64}")


_DEVICES = (type(None), str, int, flambeau.device)


@set_error_name("torch.storage.UntypedStorage")
class UntypedStorage(StorageBase, InMainMemory):
    """A row of bytes: `UntypedStorage(8)`, `UntypedStorage([1, 2])`."""

    _root: Any
    __slots__ = ("__dict__", "__weakref__", "_bytes", "_device", "_root", "_size", "_tensors")

    def __init__(self, *args: Any, **kwargs: Any):
        device = kwargs.get("device")
        if len(args) > 1 or kwargs.keys() - {"device"} or type(device) not in _DEVICES:
            given = {k: v for k, v in kwargs.items() if v is not None or k != "device"}
            bound(("torch.UntypedStorage(*, int? allocator=None, Device? device=None) -> ()",
                   "torch.UntypedStorage(int size, *, int? allocator=None, Device? device=None) -> "
                   "()", "torch.UntypedStorage(object sequence, *, int? allocator=None, Device? "
                   "device=None) -> ()"), args, given)
        data: Any = args[0] if args else 0
        self._device = flambeau.device("cpu" if device is None else device)
        if isinstance(data, int) and not isinstance(data, bool):
            check_size(data)
            meta = self._device.type == "meta"
            self._hold(np.empty(0 if meta else data, np.uint8), data)
        else:
            self._hold(np.array(sources.bytes_of(data), np.uint8), len(data))

    def _hold(self, root: np.ndarray, size: int | None = None) -> None:
        """Take the memory of `root`."""
        self._root = root
        self._bytes = dense_bytes(root)
        if self._bytes is None:
            raise NotImplementedError(
                "untyped_storage(): the tensor looks at a NumPy array that was given from outside "
                f"and has gaps (shape {root.shape}, strides {root.strides}); clone() it first"
            )
        self._size = root.nbytes if size is None else size
        self._tensors: dict[int, ref[Tensor]] = {}      # by their ids
        _storages[id(root)] = self

    @classmethod
    def _of(cls, root: np.ndarray) -> UntypedStorage:
        """The storage of the memory of `root`."""
        storage = _storages.get(id(root))
        if storage is None:
            storage = object.__new__(cls)
            storage._device = flambeau.device("cpu")
            storage._hold(root)
        return storage

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """New memory that other processes can map."""
        from flambeau.multiprocessing.reductions import shared_array
        return cls._of(shared_array(size))

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._device

    @_in_c
    def nbytes(self) -> int:
        """Its length in bytes."""
        return self._size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self._size

    @shown_as("_StorageBase.size")
    def size(self) -> int:
        """Its length in bytes."""
        return self._size

    def __len__(self) -> int:
        return self._size

    @_in_c
    def element_size(self) -> int:
        """1: its elements are bytes."""
        return 1

    @_in_c
    def data_ptr(self) -> int:
        """The address of the first byte."""
        if self._device.type == "meta":
            return 0
        return self._bytes.__array_interface__["data"][0] if self._bytes.size else 0

    @property
    def _token(self) -> Any:
        """What this storage is known by: an object that lives as long as a tensor looks at it."""
        token = getattr(self._root, "token", None)
        return self._root if token is None else token

    @property
    def _cdata(self) -> int:
        return id(self._token)

    is_sparse_csr = False

    @_in_c
    def is_shared(self) -> bool:
        """Can other processes map this memory?"""
        return isinstance(self._root, (SharedArray, np.memmap))

    @property
    def filename(self) -> str | None:
        """The file that the memory was mapped from."""
        return str(self._root.filename) if isinstance(self._root, np.memmap) else None

    @shown_as("_StorageBase.type")
    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its type, or its bytes converted to another storage type."""
        if dtype is None:
            return "torch.storage.UntypedStorage"
        from flambeau.storage.typed import converted
        return converted(self, dtype)

    @shown_as("_StorageBase.untyped")
    def untyped(self) -> UntypedStorage:
        """Itself."""
        return self

    def _fix_weakref(self) -> None:
        """Nothing: a weak reference holds as long as this object lives, which owns its memory."""

    # ---- its bytes -------------------------------------------------------------------------------

    def _writable(self) -> np.ndarray:
        if self._bytes.size and not self._root.flags.writeable:
            copy_on_write.own(self._bytes)
        return self._readable()

    def _readable(self) -> np.ndarray:
        if self._device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        return self._bytes

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError(f"Trying to slice with a step of {index.step}, but only a step "
                                   "of 1 is supported")
            part = object.__new__(UntypedStorage)
            part._device = self._device
            part._hold(self._readable()[index])
            return part
        return self._readable()[self._checked(index)].item()

    def __setitem__(self, index: Any, value: int) -> None:
        if not isinstance(value, int):
            raise RuntimeError("can only set storage content with a int types, but got "
                               f"{type(value).__name__} instead")
        self._writable()[index if isinstance(index, slice) else self._checked(index)] = value

    def _checked(self, index: Any) -> int:
        if not isinstance(index, int):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(index).__name__}")
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} out of range for storage of size {self._size}")
        return index

    def __iter__(self) -> Iterator[int]:
        return iter(self.tolist())

    @shown_as("_StorageBase.tolist")
    def tolist(self) -> list[int]:
        """The bytes as integers."""
        return self._readable().tolist()

    @_in_c
    def fill_(self, value: int) -> UntypedStorage:
        """Set every byte."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {type_name(value)}")
        self._writable()[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Take the bytes of another storage of the same size."""
        if not isinstance(non_blocking, bool | None):
            raise TypeError("copy_(): argument 'non_blocking' (position 2) must be bool, not "
                            f"{type_name(non_blocking)}")
        if not hasattr(source, "untyped"):
            raise TypeError("copy_(): argument 'src' (position 1) must be torch.Storage, not "
                            f"{type_name(source)}")
        source = source.untyped()
        if len(source) != len(self):
            raise RuntimeError(f"size does not match, self was {len(self)} bytes but src was "
                               f"{len(source)} bytes")
        if self._device.type == "meta":
            return self
        if source._device.type == "meta":
            raise _no_data()
        self._writable()[...] = source._bytes
        return self

    @shown_as("_StorageBase.clone")
    def clone(self) -> UntypedStorage:
        """A copy in memory of its own."""
        return UntypedStorage(self._size, device=self._device).copy_(self)

    __copy__ = clone

    @shown_as("_StorageBase.__deepcopy__")
    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:                # tensors on it are copied into the same memory
            memo[id(self)] = self.clone() if self._device.type == "meta" \
                or self._size != self._root.nbytes \
                else UntypedStorage._of(copied_root(self._root, memo))
        return memo[id(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_bytes, (self._readable().tobytes(),)

    @shown_as("_StorageBase.byteswap")
    def byteswap(self, dtype: Any) -> None:
        """Reverse the order of the bytes in each element of a dtype."""
        if not isinstance(dtype, flambeau.dtype):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        if self._size % dtype.itemsize:
            raise RuntimeError(f"the length of data is not a multiple of {dtype.itemsize}")
        step = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        rows = self._writable().reshape(-1, step)
        rows[...] = rows[:, ::-1].copy()

    @_in_c
    def resize_(self, size: int) -> UntypedStorage:
        """Change the length, keeping the bytes that fit.

        The storage takes new memory, and moves the tensors that look at it there where they still
        fit.
        """
        if not isinstance(size, int):
            raise RuntimeError(f"resize_ expects an int, but got {type_name(size)}")
        check_size(size)
        if size == self._size:
            return self
        if self._device.type == "meta":
            self._size = size
            return self
        size_of_one = self._root.itemsize
        fresh = np.zeros(size // size_of_one, self._root.dtype) if size % size_of_one == 0 \
            else np.zeros(size, np.uint8)
        self._move(fresh, "Trying to resize storage that is not resizable: NumPy arrays view it, "
                          "whose memory cannot change")
        return self

    def _move(self, fresh: np.ndarray, refusal: str = "") -> None:
        """Take the memory of `fresh`, with the bytes that fit, and move all tensors there.

        Arrays that are not tensors' stay behind; a `refusal` is raised instead.
        """
        before, old_key = self._root, id(self._root)
        tensors: dict[int, tuple[Tensor, int]] = {}

        def held_elsewhere() -> bool:
            # getrefcount: `before`, self._root, its argument and the base of self._bytes; a
            # tensor's array refers to the root or is the root.
            return sys.getrefcount(before) - 4 > len(tensors)

        for known in list(self._tensors.values()):
            tensor = known()
            if tensor is not None:
                self._find(tensor, tensors)
        tensor = None
        if held_elsewhere():            # views that have not been asked for their storage
            for tensor in _all_tensors():
                self._find(tensor, tensors)
            tensor = None
        if refusal and held_elsewhere():
            raise RuntimeError(refusal)
        size = fresh.nbytes
        keep = min(size, self._bytes.size)
        dense_bytes(fresh)[:keep] = self._bytes[:keep]
        self._root, self._bytes, self._size = fresh, dense_bytes(fresh), size
        _storages.pop(old_key, None)
        _storages[id(fresh)] = self
        for tensor, offset in tensors.values():
            array = arrays_of([tensor])[0]
            if _fits(array, offset, size):
                set_data(tensor, wrap(np.ndarray(array.shape, array.dtype, self._bytes, offset,
                                                 array.strides)))

    def _arrays(self) -> list[np.ndarray]:
        """Those of all tensors that look at this memory, and of its bytes."""
        found: dict[int, tuple[Tensor, int]] = {}
        for tensor in _all_tensors():
            self._find(tensor, found)
        return [self._bytes, *arrays_of([tensor for tensor, _ in found.values()])]

    def _find(self, tensor: Tensor, found: dict[int, tuple[Tensor, int]]) -> None:
        array = arrays_of([tensor])[0]
        if array is not None and array_root(array) is self._root:
            found[id(tensor)] = tensor, array_offset(array)

    # ---- elsewhere and as something else ---------------------------------------------------------

    @shown_as("_StorageBase.cpu")
    def cpu(self) -> UntypedStorage:
        """This storage if it is on the CPU, else a copy that is."""
        return self.to(device="cpu")

    @shown_as("_StorageBase.to")
    def to(self, *, device: Any, non_blocking: bool = False) -> UntypedStorage:
        """This storage on a device (`cpu`, `meta`)."""
        device = flambeau.device(device)
        if device.type == self._device.type:
            return self
        if device.type == "meta":
            return UntypedStorage(self._size, device=device)
        if device.type == "cpu":
            raise _no_data()
        raise NotImplementedError(f"storages on device '{device}': flambeau has 'cpu' and 'meta'")

    @shown_as("_StorageBase.mps")
    def mps(self) -> Any:
        """A copy on an Apple GPU: there is none."""
        return self.to(device="mps")

    @shown_as("_StorageBase.pin_memory")
    def pin_memory(self, device: Any = None) -> Any:
        """Raises NotImplementedError: without an accelerator no memory is pinned."""
        raise NotImplementedError("pin_memory(): there is no accelerator to pin memory for")

    @shown_as("_StorageBase.share_memory_")
    def share_memory_(self) -> UntypedStorage:
        """Move the bytes, and all tensors that look at them, to memory that other processes can
        map; those that are sent to them see the same memory."""
        self._check_shareable("_share_fd_")
        if not self.is_shared():
            from flambeau.multiprocessing.reductions import shared_array
            self._move(shared_array(self._size))
        return self

    def _check_shareable(self, name: str) -> None:
        if self._device.type == "meta":
            raise RuntimeError(f"{name}: only available on CPU")

    def _share_fd_cpu_(self) -> tuple[int, int]:
        """A new descriptor of the memory, which is shared from now on, and its size."""
        place = self.share_memory_()._root.place
        if not isinstance(place, int):
            raise NotImplementedError("_share_fd_cpu_(): memory is shared by names of files")
        return os.dup(place), self._size

    def _share_filename_cpu_(self) -> Any:
        self._check_shareable("_share_filename_")
        raise NotImplementedError("_share_filename_cpu_(): see torch.multiprocessing.reductions")

    def _write_file(self, file: Any, is_real_file: bool, save_size: bool,
                    element_size: int) -> None:
        """Write the number of elements, if `save_size`, and the bytes to an open file."""
        if self._device.type == "meta":
            raise _no_data()
        if save_size:
            file.write((self._size // element_size).to_bytes(8, "little"))
        file.write(self._bytes.tobytes())

    @_in_c
    def new(self) -> UntypedStorage:
        """An empty storage on the same device."""
        return UntypedStorage(device=self._device)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> UntypedStorage:
        """A copy of the bytes of an object with the buffer protocol: `from_buffer(buffer,
        byte_order, count=-1, offset=0, dtype=...)`."""
        values, dtype, byte_order = sources.of_buffer(args, kwargs)
        storage = storage_of(wrap(values))
        if byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return storage

    @classmethod
    def from_file(cls, *args: Any, **kwargs: Any) -> UntypedStorage:
        """A storage on the bytes of a file: `from_file(filename, shared=False, nbytes=0)`."""
        mapped = sources.of_file(args, kwargs)
        storage = object.__new__(cls)
        storage._device = flambeau.device("cpu")
        storage._hold(mapped)
        return storage

    def __repr__(self) -> str:
        return described(self, f"UntypedStorage(device={self._device})")

    __str__ = __repr__


def _all_tensors() -> list[Tensor]:
    return [thing for thing in gc.get_objects() if type(thing) in tensor_types]


def _fits(array: np.ndarray, offset: int, size: int) -> bool:
    extent = sum((n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True))
    return not array.size or offset + extent + array.itemsize <= size


def described(storage: Any, name: str) -> str:
    """The text of a storage: one element a line, then its type and size."""
    values = "..." if storage.device.type == "meta" else " " + "\n ".join(
        map(str, storage.tolist()))
    return f"{values}\n[torch.storage.{name} of size {len(storage)}]"


def storage_of(tensor: Tensor) -> UntypedStorage:
    """The storage that a tensor looks at: `tensor.untyped_storage()`."""
    array = arrays_of([tensor])[0]
    if tensor.device.type == "meta":
        return UntypedStorage(tensor.numel() * array.itemsize, device="meta")
    root = array_root(array)
    storage = UntypedStorage._of(root)
    storage._tensors[id(tensor)] = ref(tensor)
    return storage


# Typed storages -----------------------------------------------------------------------------------


def _of_bytes(data: bytes) -> UntypedStorage:
    """A storage in memory of its own."""
    return UntypedStorage._of(np.frombuffer(bytearray(data), np.uint8))


def _no_data() -> NotImplementedError:
    return NotImplementedError("Cannot copy out of meta tensor; no data!")
