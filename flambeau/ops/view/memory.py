"""Methods about the memory under a tensor: `set_`, `resize_`, pinning, sharing."""
from __future__ import annotations

from itertools import pairwise
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from flambeau._support.devices.backends import could_not_run
from flambeau._support.source_locations import counter_of
from flambeau.core import devices, type_info
from flambeau.core.autograd.graph import next_order
from flambeau.core.calling import overrides
from flambeau.core.dtypes import as_numpy_dtype
from flambeau.core.modes import inference
from flambeau.core.op import public
from flambeau.core.promotion import c_name, type_name
from flambeau.core.shapes import contiguous_strides, refuse_negative
from flambeau.core.tensor import (
    LEAF,
    Tensor,
    array_offset,
    array_root,
    array_strides,
    plain_types,
    wrap,
)
from flambeau.core.views import check_inplace, count_write
from flambeau.dispatch.members import member
from flambeau.ops.inplace import becomes_view, slot
from flambeau.ops.python.methods import Chapter, adopt
from flambeau.ops.resizing import bytes_needed, on_buffer, resized
from flambeau.ops.view.join import cat
from flambeau.ops.view.reshaping import reshape
from flambeau.ops.view.strided import as_strided


def _move_to_memory(self: Tensor, array: np.ndarray) -> Tensor:
    """Let the tensor look at other memory."""
    self._array = array
    count_write(self)
    return self


def _first_elements(slices: Tensor, size: Any) -> Tensor:
    """The elements of each slice in another shape, as many as fit; zeros where there are none."""
    flat, count = reshape(slices, (-1,)), prod(size)
    missing = count - flat.numel()
    if missing > 0:
        flat = cat([flat, wrap(np.zeros(missing, flat._array.dtype))], 0)
    return reshape(flat[:count], size)


@member("resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> "
        "Tensor(a!)", function=False, explicit=True)
def resize_(self: Any, size: Any, memory_format: Any) -> Tensor:
    """Another shape on the same memory, in its order, with more memory if that is too small; new
    elements are zero."""
    refuse_negative(size, "numel: integer multiplication overflow")
    if self.requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    if type(self) in overrides.sparse_types:
        return overrides.own_rules[type(self)](resize_, (self, size), {})
    if size == self._array.shape:
        return self
    if type(self) not in plain_types and hasattr(self, "_bdim"):          # a slice under vmap
        self.become_view(lambda before: _first_elements(before, size))
        return self
    return _move_to_memory(self, resized(self, size))


@member("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
        "Tensor(a!)", explicit=True)
def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any) -> Tensor:
    """`resize_` to the shape of another tensor."""
    if type(self) in overrides.sparse_types:
        return overrides.own_rules[type(self)](resize_as_, (self, the_template), {})
    return self.resize_(the_template.shape)


@member("set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)",
        "set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt "
        "storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
        "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
        "set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt "
        "storage_offset, SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
        "set_(Tensor(a!) self) -> Tensor(a!)", function=False, explicit=True)
def set_(self: Tensor, source: Any, storage_offset: int | None, size: Any, stride: Any) -> Tensor:
    """Look at the memory of a tensor or storage, from now on. A leaf gets a new accumulator: to
    the graph before, it is another tensor."""
    if self._edge is LEAF:
        check_inplace(self, False, apart=False)
        self._accumulator, self._renewed = None, next_order()
    if source is None:
        return _move_to_memory(self, np.empty(0, self._array.dtype))
    if isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            a, b = (c_name(t.dtype) for t in (source, self))
            raise RuntimeError(f"Could not set tensor of type {a} to a tensor of type {b}")
        if size is None:
            self._counter = counter_of(source)
            return _move_to_memory(self, slot(source))
        buffer = array_root(slot(source))
    else:
        if getattr(source, "dtype", self.dtype) is not self.dtype:
            raise RuntimeError(f"Expected a Storage of type {c_name(self.dtype)} or an "
                               f"UntypedStorage, but got type {type_name(source.dtype)} for "
                               "argument 1 'storage'")
        source = source.untyped() if hasattr(source, "untyped") else source
        buffer = source._bytes
    item = self._array.itemsize
    if size is None:
        size = (buffer.nbytes // item,)
    storage_offset, given = storage_offset or 0, stride
    stride = stride or contiguous_strides(size)
    needed = bytes_needed(size, stride, storage_offset, item)
    if needed > buffer.nbytes:
        if tuple(size) == self._array.shape:        # only a tensor of another size makes it grow
            raise RuntimeError(
                f"setStorage: sizes {list(size)}, strides {list(given or ())}, storage offset "
                f"{storage_offset}, and itemsize {item} requiring a storage size of {needed} are "
                f"out of bounds for storage of size {buffer.nbytes}")
        source.resize_(needed)
        buffer = source._bytes
    return _move_to_memory(self, on_buffer(buffer, self._array.dtype, size, stride, storage_offset))


@member("is_set_to(Tensor self, Tensor tensor) -> bool", function=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Do both look at the same memory in the same way?"""
    a, b = self._array, tensor._array
    return (a.shape == b.shape and array_strides(a) == array_strides(b)
            and a.dtype == b.dtype and array_root(a) is array_root(b)
            and array_offset(a) == array_offset(b))


becomes_view(as_strided, "as_strided_(SymInt[] size, SymInt[] stride, "
             "SymInt? storage_offset=None)", function=True)


@member("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
        function=False)
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool) -> Tensor:
    """Fill the main diagonal; of tall matrices, with `wrap`, again after each block of rows."""
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    step = sum(array_strides(self._array))
    count = min(shape)
    offset = self.storage_offset()
    as_strided(self, (count,), (step,), offset).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        rows, columns = shape
        for top in range(columns + 1, rows, columns + 1):
            part = self[top:top + columns]
            n = min(part._array.shape)
            as_strided(self, (n,), (step,), part.storage_offset()).fill_(fill_value)
    return self


@member("const_data_ptr(Tensor self) -> int", function=False)
def const_data_ptr(self: Tensor) -> int:
    """`data_ptr`, for reading."""
    return self.data_ptr()


@member("is_pinned(Tensor self, Device? device=None) -> bool", function=False)
def is_pinned(self: Tensor, device: Any) -> bool:
    """Is the memory locked for copies to an accelerator? There is none."""
    if isinstance(device, str):
        devices.device(device)                      # it has to be one
    return False


@member("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", function=False)
def pin_memory(self: Tensor, device: Any) -> Tensor:
    """Lock the memory for copies to an accelerator."""
    if device is not None and devices.device(device).type == "cpu":
        raise RuntimeError("CPU device type not an accelerator.")
    raise RuntimeError("Cannot access accelerator device when none is available.")


@member("record_stream(Tensor(a!) self, Stream s) -> ()", function=False)
def record_stream(self: Tensor, stream: Any) -> None:
    """Tell the allocator that a stream uses the memory: the CPU's has no streams."""
    if "Stream" not in [base.__name__ for base in type(stream).__mro__]:
        raise RuntimeError("unknown parameter type")
    raise could_not_run("record_stream", self.device.type.upper(), "Meta")


@member("to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor",
        function=False)
def to_padded_tensor(self: Tensor, padding: float, output_size: Any) -> Tensor:
    """A nested tensor with `padding` where it has nothing; others have nothing to pad."""
    raise could_not_run("to_padded_tensor", self.device.type.upper(), "Meta", "NestedTensorCPU")


class Memory(Chapter):
    """What PyTorch too writes in Python."""

    def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions from the outermost in memory to the innermost.

        With `ambiguity_check` RuntimeError if a dimension could as well stand elsewhere, because it
        has one element or the stride of a neighbour. A list of memory formats allows that where
        just one of them is the tensor's.
        """
        if self.layout is not type_info.strided:
            raise AttributeError(f"Can't get dim order on tensor with layout {self.layout}, since "
                                 "it has no strides")
        formats = ambiguity_check if isinstance(ambiguity_check, list) else []
        if not isinstance(ambiguity_check, bool | list) or not all(
                isinstance(f, type_info.memory_format) for f in formats):
            raise TypeError("The ambiguity_check argument must be a bool or a list of memory "
                            "formats.")
        strides = array_strides(self._array)
        ambiguous = 1 in self._array.shape or any(a == b for a, b in pairwise(strides))
        if ambiguity_check and ambiguous and sum(
                self.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact "
                               "one of the given memory formats.")
        return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))

    def is_shared(self: Tensor) -> bool:
        """Is the memory shared with other processes?"""
        return self.untyped_storage().is_shared()

    def share_memory_(self: Tensor) -> Tensor:
        """Move the memory to where other processes can see it."""
        self.untyped_storage().share_memory_()
        return self

    def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
        """What `load_state_dict` stores for a parameter: this tensor, overwritten, or the other."""
        return other.detach() if assign else self.copy_(other).detach()


adopt(Memory)


def typename(obj: Any, /) -> str:
    """The name of an object's type; of a tensor, its historical type.

    >>> import flambeau
    >>> flambeau.typename(flambeau.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    if isinstance(obj, ModuleType):
        return obj.__name__.replace("flambeau", "torch", 1)
    cls = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(cls, "__module__", "") or ""
    return cls.__qualname__ if module in ("", "builtins") else f"{module}.{cls.__qualname__}"


def from_file(filename: str, shared: bool | None = None, size: int | None = 0, *,
              dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False) -> Tensor:
    """A vector on the bytes of a file; `shared`: writes change the file."""
    from flambeau.core.dtypes import default_float
    from flambeau.ops.factory.from_data import from_numpy
    from flambeau.storage import UntypedStorage
    d = as_numpy_dtype(dtype) or default_float()
    storage = UntypedStorage.from_file(filename, bool(shared), size * d.itemsize)
    return from_numpy(storage._bytes.view(d))


for _function in (typename, from_file):
    public["torch"][_function.__name__] = _function
