"""What a tensor says of itself, and its elements as Python numbers: methods that have schemas."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau._support.source_locations import native
from flambeau.core import devices, type_info
from flambeau.core.dtypes import FLOATING
from flambeau.core.modes import grad_enabled, levels
from flambeau.core.promotion import type_name
from flambeau.core.shapes import Size, as_size, wrap_dim, wrap_existing_dim
from flambeau.core.tensor import Tensor, array_offset, array_strides, tensor_types
from flambeau.dispatch.declaration import op
from flambeau.dispatch.members import member
from flambeau.kernels.moving.layouts import channels_last_strides


def _in_c(name: str, knows: Any = None) -> Any:
    return native and partial(native.make_member, name, knows)


member("dim(Tensor self) -> int", body=lambda self: self._array.ndim, function=False,
       aliases=("ndimension(Tensor self) -> int",), in_c=_in_c("dim"),
       doc="The number of dimensions.")
member("numel(Tensor self) -> int", body=lambda self: self._array.size, in_c=_in_c("numel"),
       aliases=("nelement(Tensor self) -> int",), doc="The number of elements.")
member("element_size(Tensor self) -> int", body=lambda self: self._array.itemsize,
       function=False, in_c=_in_c("element_size"), doc="Bytes per element.")
member("storage_offset(Tensor self) -> int", function=False,
       body=lambda self: array_offset(self._array) // self._array.itemsize,
       doc="The position of the first element in the underlying memory, in elements.")
member("is_floating_point(Tensor self) -> bool", in_c=_in_c("is_floating_point"),
       body=lambda self: self.dtype.is_floating_point,
       doc="Are the elements of a floating (not complex) type?")
member("is_complex(Tensor self) -> bool", in_c=_in_c("is_complex"),
       body=lambda self: self._array.dtype.kind in "cW", doc="Are the elements of a complex type?")
member("is_signed(Tensor self) -> bool", body=lambda self: self.dtype.is_signed,
       doc="Can the elements be negative?")
member("is_inference(Tensor self) -> bool", body=lambda self: self._inference,
       doc="Was this made under `inference_mode`?")
member("get_device(Tensor self) -> int", body=lambda self: -1,
       doc="The number of the accelerator that holds the tensor; -1 on the CPU.")
member("is_distributed(Tensor self) -> bool", body=lambda self: False,
       doc="Is the tensor spread over processes? Never, for this class.")
member("is_same_size(Tensor self, Tensor other) -> bool",
       body=lambda self, other: self._array.shape == other._array.shape,
       doc="Do both have the same shape?")


@member("size(Tensor self, int? dim=None) -> int[]", function=False, in_c=_in_c("size", Size))
def size(self: Tensor, dim: int | None) -> Any:
    """The shape, or the extent of one dimension."""
    shape = self._array.shape
    if dim is None or -len(shape) <= dim < len(shape):
        return as_size(Size, shape) if dim is None else shape[dim]
    return wrap_existing_dim(dim, len(shape))       # which raises


@member("stride(Tensor self, int? dim=None) -> int[]", function=False, in_c=_in_c("stride"))
def stride(self: Tensor, dim: int | None) -> Any:
    """How many elements of memory lie between neighbours along each (or one) dimension."""
    strides = array_strides(self._array)
    if dim is None:
        return strides
    if not strides:
        return self.size(dim)               # which raises
    return strides[wrap_dim(dim, len(strides))]


@member("data_ptr(Tensor self) -> int", function=False, in_c=_in_c("data_ptr"))
def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return 0 if self._device is not devices.cpu or not self._array.size \
        else self._array.__array_interface__["data"][0]


@member("is_contiguous(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> bool",
        function=False, in_c=_in_c("is_contiguous"))
def is_contiguous(self: Tensor, memory_format: Any) -> bool:
    """Do the elements lie in memory in the order of their indices?"""
    if memory_format in (None, type_info.contiguous_format, type_info.preserve_format):
        return self._array.flags.c_contiguous
    axes = type_info.CHANNELS_LAST.get(memory_format)
    if axes is None or self.ndim != len(axes):
        return False
    array = self._array
    if array.size:
        return array.transpose(axes).flags.c_contiguous
    return all(n == 1 or s == t for n, s, t in zip(
        array.shape, array_strides(array), channels_last_strides(array.shape)))


@member("item(Tensor self) -> Scalar", function=False, in_c=_in_c("item"))
def item(self: Tensor) -> Any:
    """The one element, as a Python number."""
    array = self._array
    if array.size != 1 or self._device is not devices.cpu:
        if array.size == 1:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    stack = levels.get()
    if stack and stack[-1].makes:               # a dispatch mode sees what reads the number
        import flambeau
        number = within(levels, stack[:-1], stack[-1].ask,
                        flambeau.ops.aten._local_scalar_dense.default, (self,), {})
        if type(number) in tensor_types:
            shown = within(levels, stack[:-1], repr, number)
            raise RuntimeError(f"Cannot cast {shown} to number")
        return number
    return array.item()


@op("_local_scalar_dense(Tensor self) -> Scalar", function=False, method=False, out=False)
def _local_scalar_dense(self: Tensor) -> Any:
    """The first element, as a Python number."""
    if not self._array.size:
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported")
    return (self if self._array.size == 1 else self.reshape(-1)[0]).item()


@member("tolist(Tensor self) -> object", function=False, in_c=_in_c("tolist"))
def tolist(self: Tensor) -> Any:
    """The elements as a Python number or nested lists."""
    if self._device is not devices.cpu:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    array = self._array
    if array.dtype.kind not in "biufcW" or array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return array.tolist()


@member("numpy(Tensor self, *, bool force=False) -> object", function=False, in_c=_in_c("numpy"))
def numpy(self: Tensor, force: bool) -> np.ndarray:
    """The elements as an array on the same memory; `force` detaches and copies if needed."""
    if not force and self.requires_grad and grad_enabled():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                           "tensor.detach().numpy() instead.")
    if self._device is not devices.cpu:
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy "
                        "the tensor to host memory first.")
    if self._array.dtype.kind not in "biufc" or self._array.dtype.isbuiltin == 2:
        raise TypeError(f"Got unsupported ScalarType {type_name(self.dtype)}")
    return self._array


@member("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)", function=False,
        in_c=_in_c("requires_grad"))
def requires_grad_(self: Tensor, requires_grad: bool) -> Tensor:
    """Set `requires_grad` in place; returns the tensor."""
    if requires_grad and self._array.dtype not in FLOATING:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    self.requires_grad = requires_grad
    return self
