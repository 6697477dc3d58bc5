"""Tensors made of data: numbers, nested sequences, arrays, buffers, other tensors.

These functions have parsers of their own, as in PyTorch: what they take depends on the data.
"""
from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flambeau._support.scopes import within
from flambeau._support.settings import warn_once, warn_user
from flambeau.core import devices, dtypes
from flambeau.core.calling import fast
from flambeau.core.dtypes import as_numpy_dtype, default_float, from_numpy_dtype
from flambeau.core.modes import grad_mode
from flambeau.core.op import public
from flambeau.core.promotion import convert, type_name
from flambeau.core.tensor import Tensor, array_root, as_leaf, wrap
from flambeau.core.type_info import strided
from flambeau.dispatch.declaration import op
from flambeau.dispatch.factory import finish
from flambeau.dispatch.python_functions import python_function
from flambeau.kernels.moving import views
from flambeau.ops.coercion import as_element
from flambeau.schema.errors import type_name as type_name_of

lift_fresh = op("lift_fresh(Tensor(a) self) -> Tensor(a)", function=False, method=False,
                explicit=True, body=lambda self: self, doc="A tensor of a program's own numbers.")


def _run_and_lift(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """A tensor of a program's own numbers, which is shown once it is there."""
    return within(grad_mode, False, lift_fresh, function.twin.run(args, kwargs))


def creation(schema: str) -> Any:
    """Declare a function that makes tensors of data."""
    name = schema.partition("(")[0]
    return op(f"{schema} -> Tensor", kind="creation", method=False, out=False,
              aten_calls=lambda *args, **kwargs: _run_and_lift(public["torch"][name], args, kwargs))


@creation("tensor(object data, *, ScalarType dtype=None, Device? device=None, "
          "bool pin_memory=False, bool requires_grad=False)")
def tensor(data: Any, dtype: Any, device: Any, pin_memory: bool, requires_grad: bool) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array or a tensor.

    The type is that of the data: float32 (the default) for floats, int64 for ints, bool for bools.

    >>> import flambeau
    >>> flambeau.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        warn_of_copies("torch.tensor")
    if pin_memory:
        raise devices.cannot_pin()
    return finish(array_of(data, dtype, copy=True), device, requires_grad)


def warn_of_copies(said: str) -> None:
    """Warn of data that are a tensor."""
    warn_user("To copy construct from a tensor, it is recommended to use sourceTensor.detach()."
              "clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
              f"{said}(sourceTensor).")


def array_of(data: Any, dtype: Any = None, copy: bool = False) -> np.ndarray:
    """`data` as an array of the type torch gives it."""
    target = as_numpy_dtype(dtype)
    kind = type(data)
    if kind is float:
        return np.array(data, target or default_float()) if target is None or target.kind in "fc" \
            else _from_number(data, target)
    if kind is bool or kind is int or kind is complex:
        return _from_number(data, target)
    if isinstance(data, Tensor):
        if hasattr(data, "_level"):
            data.item()                     # one slice, whatever the slice: raises
        array = data._array
        return views.copy(array) if target is None or target == array.dtype \
            else convert(array, target)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        if kind is np.str_ or kind is np.bytes_:
            raise TypeError(f"new(): invalid data type 'numpy.{type(data).__name__}'")
        _check_readable(array)
        if target is not None and target != array.dtype:
            return _convert_new(array, target)
        return views.copy(array) if copy else array
    if isinstance(data, (list, tuple)) or (isinstance(data, Sequence)
                                           and not isinstance(data, (str, bytes))):
        return _from_sequence(data, target)
    if isinstance(data, (str, bytes)):
        raise _no_number(data, None)
    if data is None or isinstance(data, Mapping):
        raise _no_number(data, target)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return array_of(np.asarray(data), dtype, copy)
    if hasattr(data, "__dlpack__"):
        return array_of(np.from_dlpack(data), dtype, copy)
    if isinstance(data, numbers.Number) or hasattr(data, "__float__"):
        return array_of(int(data) if isinstance(data, numbers.Integral) else float(data), dtype)
    if hasattr(data, "untyped"):
        from flambeau.storage import elements_of
        return elements_of(data, dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _from_sequence([data[i] for i in range(len(data))], target)
    raise _no_number(data, target)


def _no_number(data: Any, target: np.dtype | None) -> Exception:
    """What is said of something that is no number of the type, which is None if it is to be
    found."""
    name = type_name_of(data)
    if isinstance(data, (str, bytes)) and target is None:
        return TypeError(f"new(): invalid data type '{name}'")
    if target is None:
        return RuntimeError(f"Could not infer dtype of {name}")
    if target.kind in "uib":
        return TypeError(f"'{name}' object cannot be interpreted as an integer")
    return TypeError(f"must be real number, not {name}")


def _check_readable(array: np.ndarray) -> None:
    from_numpy_dtype(array.dtype)
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. "
                         "Conversion between byte orders is currently not supported.")


def _complex_of_data() -> np.dtype:
    """The type of complex numbers that are given no type."""
    if dtypes.default_float() == dtypes.bfloat16.numpy:
        raise RuntimeError("invalid default scalar type for complex")
    return dtypes.default_complex()


def _from_number(data: Any, target: np.dtype | None) -> np.ndarray:
    if target is None:
        natural = {bool: np.bool_, int: np.int64}.get(type(data))
        try:
            return np.array(data, natural or _complex_of_data())
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
    if type(data) in (int, float) and target.kind in "ui":
        if type(data) is int and not -2**63 <= data < 2**64:
            raise ValueError("Overflow when unpacking long long")
        try:
            return np.array(as_element(data, target), target)
        except RuntimeError:
            raise _too_large(target) from None
    if type(data) is complex and target.kind not in "cWb":
        raise _no_number(data, target)
    return _convert_new(np.array(data), target)


def _too_large(target: np.dtype) -> RuntimeError:
    return RuntimeError(f"value cannot be converted to type {target.name} without overflow")


def _convert_new(array: np.ndarray, target: np.dtype) -> np.ndarray:
    converted = convert(array, target)
    return converted if converted is not array else array.copy()


def _from_sequence(data: Any, target: np.dtype | None) -> np.ndarray:
    """Nested sequences: NumPy reads them if it can; tensors inside make it slower."""
    if target is None:
        array = fast.read_numbers(data, default_float())
        if array is not None:
            return array
    shape = _nested_shape(data)
    if data and type(data) is list and isinstance(data[0], np.ndarray):
        warn_once("Creating a tensor from a list of numpy.ndarrays is extremely slow. Please "
                  "consider converting the list to a single numpy.ndarray with numpy.array() "
                  "before converting to a tensor.")
    try:
        array = np.array(data)
        if array.dtype == object or array.dtype.kind in "US" or array.shape != shape:
            array = None
    except (ValueError, TypeError, RuntimeError, OverflowError):
        array = None
    if array is None:
        return _from_leaves(data, shape, target)
    if target is not None and target.kind not in "bcW" and array.size and array.dtype.kind in "ifc":
        _check_leaves(array, target)
    if array.dtype == np.float64 and (target is None or target.kind == "f"):
        if array.size and _holds_arrays(data):
            return _from_leaves(data, shape, target)
        return convert(array, default_float() if target is None else target)
    if target is not None:
        if target != array.dtype:
            return convert(array, target)
        return array
    if array.dtype == np.uint64 and not _holds_arrays(data):
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind in "ui":
        return array if array.dtype == np.int64 or _holds_arrays(data) else array.astype(np.int64)
    if array.dtype.kind in "cW":
        if array.size and _holds_types(data):
            return _from_leaves(data, shape, target)
        return convert(array, _complex_of_data())
    if not array.size:
        return array.astype(default_float())
    return array


def _check_leaves(array: np.ndarray, target: np.dtype) -> None:
    """Raise if numbers of a list cannot be of the type that is asked for."""
    if array.dtype.kind == "c":
        raise _no_number(1j, target)
    if target not in dtypes.FLOATING and (target != np.int64 or array.dtype.kind == "f"):
        limits = np.iinfo(target)
        low = -limits.max if target.kind == "u" and array.dtype.kind == "i" else limits.min
        if not (array.min() >= low and array.max() <= limits.max):
            raise _too_large(target)


def is_sequence(data: Any) -> bool:
    return isinstance(data, (list, tuple)) or (
        hasattr(data, "__len__") and hasattr(data, "__getitem__")
        and not isinstance(data, (str, bytes, Tensor, np.ndarray, Mapping)))


def _nested_shape(data: Any) -> tuple[int, ...]:
    """The shape that the first items of nested sequences show. A tensor among them is a number."""
    shape = []
    while is_sequence(data):
        shape.append(len(data))
        if not len(data):
            break
        if len(shape) > 128:                # a list that holds itself has no end
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        data = data[0]
    if isinstance(data, str):
        raise ValueError("too many dimensions 'str'")
    if isinstance(data, np.ndarray):
        shape += data.shape
    return tuple(shape)


def _holds_types(data: Any) -> bool:
    """Is anything in these lists of a type of its own, as Python's numbers are not?"""
    return isinstance(data, (Tensor, np.generic, np.ndarray)) or (
        isinstance(data, (list, tuple)) and any(map(_holds_types, data)))


def _holds_arrays(data: Any) -> bool:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic, Tensor))


def _from_leaves(data: Any, shape: tuple[int, ...], target: np.dtype | None) -> np.ndarray:
    if 0 in shape:
        return np.empty(shape, target or default_float())
    leaves: list[np.ndarray] = []
    _gather_leaves(data, shape, 0, target, leaves)
    if target is None:
        common = from_numpy_dtype(leaves[0].dtype)
        from flambeau.core.promotion import join
        for leaf in leaves[1:]:
            common = join(common, from_numpy_dtype(leaf.dtype))
        target = common.numpy
    return np.concatenate([convert(leaf, target).reshape(-1) for leaf in leaves]).reshape(shape)


def _gather_leaves(item: Any, shape: tuple[int, ...], depth: int, target: np.dtype | None,
                   leaves: list[np.ndarray]) -> None:
    """Append the numbers in `item`, which lies `depth` sequences deep."""
    if depth == len(shape):
        if isinstance(item, Tensor):
            if item._array.size != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
        elif is_sequence(item):
            raise _no_number(item, target or (leaves[0].dtype if leaves else default_float()))
        if isinstance(item, (str, bytes)):
            raise _no_number(item, target)
        leaves.append(array_of(item, None if isinstance(item, (Tensor, np.generic))
                               else target and from_numpy_dtype(target)))
        return
    if isinstance(item, np.ndarray) and item.shape == shape[depth:]:
        leaves.append(item)
        return
    if not hasattr(item, "__len__") or isinstance(item, Mapping) or (
            isinstance(item, Tensor) and not item._array.ndim):
        raise TypeError("not a sequence")
    if len(item) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got "
                         f"{len(item)})")
    for inner in item:
        _gather_leaves(inner, shape, depth + 1, target, leaves)


@creation("as_tensor(object data, *, ScalarType dtype=None, Device? device=None)")
def as_tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    """`data` as a tensor, sharing memory with it where its type allows (an array, a tensor)."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(
            device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or as_numpy_dtype(dtype) == data.dtype):
        return finish(from_numpy(data)._array, device)
    return finish(array_of(data, dtype), device)


@creation("asarray(object obj, *, ScalarType? dtype=None, Device? device=None, bool? copy=None, "
          "bool? requires_grad=None)")
def asarray(obj: Any, dtype: Any, device: Any, copy: bool | None, requires_grad: bool | None
            ) -> Tensor:
    """`obj` as a tensor; `copy` True or False demands or forbids a copy. It requires grad
    and keeps its history if `requires_grad` says so, or if it says nothing and `obj` does."""
    if not isinstance(obj, (Tensor, np.ndarray)) and not hasattr(obj, "__array_interface__") \
            and not hasattr(obj, "__dlpack__"):
        if isinstance(obj, (bytes, bytearray, memoryview)):
            obj = frombuffer(obj, dtype=dtypes.get_default_dtype() if dtype is None else dtype)
        elif copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy is False:
        _check_alias(obj, dtype, device)
    result = as_tensor(obj, dtype=dtype, device=device)
    if copy and (result is obj or isinstance(obj, np.ndarray)):
        result = result.clone()
    if requires_grad and not result.requires_grad:
        result = as_leaf(result) if result.is_leaf else result.requires_grad_()
    elif requires_grad is False and result.requires_grad:
        result = result.detach()
    return result


def _check_alias(obj: Any, dtype: Any, device: Any) -> None:
    """Raise unless a tensor of this dtype, on this device, can share the memory of `obj`."""
    if isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in "
                           "a ndarray. ")
    have = obj.dtype if isinstance(obj, Tensor) else dtypes.from_numpy_dtype(
        obj.dtype if isinstance(obj, np.ndarray) else np.asarray(obj).dtype)
    if dtype is not None and dtype is not have:
        raise ValueError(f"can't alias tensor with dtype '{type_name(have)}' into dtype "
                         f"'{type_name(dtype)}'.")
    here = str(obj.device) if isinstance(obj, Tensor) else "cpu"
    if device is not None and str(devices.device(device)) != here:
        raise ValueError(f"can't alias tensor from device '{here}' to '{devices.device(device)}'.")


@creation("from_numpy(object ndarray)")
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor on the memory of an array: a write to either shows in both.

    >>> import flambeau, numpy
    >>> flambeau.from_numpy(numpy.arange(3))
    tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name_of(ndarray)})")
    _check_readable(ndarray)
    if any(s < 0 for s in ndarray.strides):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors "
                         "with negative strides are not currently supported. (You can probably "
                         "work around this by making a copy of your array  with array.copy().) ")
    if not ndarray.flags.writeable:
        warn_once("The given NumPy array is not writable, and PyTorch does not support "
                  "non-writable tensors. This means writing to this tensor will result in "
                  "undefined behavior. You may want to copy the array to protect its data or "
                  "make it writable before converting it to a tensor. This type of warning "
                  "will be suppressed for the rest of this program.")
    array = ndarray.view(np.ndarray) if type(ndarray) is not np.ndarray else ndarray
    return wrap(array if array.base is None else as_owner(array))


class _Memory:
    """The memory of a part of an array, as something that is no array itself."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: np.ndarray):
        self.array, self.__array_interface__ = array, array.__array_interface__


def as_owner(array: np.ndarray) -> np.ndarray:
    """`array` as one that is all of its memory: the storage of a tensor that is made of a part of
    an array is that part."""
    if not array.flags.c_contiguous or array.dtype.kind not in "biufc" \
            or type(array_root(array)) is not np.ndarray:       # other processes map it too
        return array
    return np.asarray(_Memory(array))


@python_function(module="utils.dlpack")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule, on the CPU;
    `copy=True` copies.

    >>> import flambeau, numpy
    >>> array = numpy.zeros(2)
    >>> flambeau.from_dlpack(array)[0] = 1
    >>> array
    array([1., 0.])
    """
    if hasattr(ext_tensor, "__dlpack__"):
        if device is not None and not isinstance(device, str | devices.device):
            raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
    elif device is not None or copy is not None:
        raise AssertionError("device and copy kwargs not supported when ext_tensor is already a "
                             "DLPack capsule.")
    if device is not None and devices.device(device).type != "cpu":
        raise BufferError(f"Cannot pack tensors on {devices.device(device)}")
    if isinstance(ext_tensor, Tensor):
        return _from_own(ext_tensor, bool(copy))
    if not hasattr(ext_tensor, "__dlpack__"):
        if type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError(_USED)
        ext_tensor = _Capsule(ext_tensor)
    try:
        array = np.from_dlpack(ext_tensor)
    except ValueError:
        if type(ext_tensor) is _Capsule:
            raise RuntimeError(_USED) from None
        raise
    if copy:
        array = array.copy()
    elif type(ext_tensor) is _Capsule:
        array = np.asarray(_Writable(array))    # NumPy does not know whether it may write
    return wrap(array)


_USED = ("from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed "
         "only once, so you might have already constructed a tensor from it once.")


def _from_own(tensor: Tensor, copy: bool) -> Tensor:
    """A tensor on the memory of another, of whatever type, which has to be plain."""
    if tensor.device.type == "meta":
        raise ValueError("Unknown device type meta for Dlpack")
    if tensor.requires_grad or tensor._conjugated:
        tensor.__dlpack__()                     # which raises
    if tensor.is_quantized:
        raise BufferError("QUInt/QInt types are not supported by dlpack")
    if tensor.layout is not strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    return wrap(tensor._array.copy() if copy else tensor._array[...])


class _Capsule:
    """A capsule in the form that NumPy takes: an object that gives it."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **versions: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0                         # the CPU


class _Writable:
    """The memory of an array, for an array that may be written to."""

    def __init__(self, array: np.ndarray):
        self._array = array
        form = array.__array_interface__
        self.__array_interface__ = form | {"data": (form["data"][0], False)}


@creation("frombuffer(object buffer, *, ScalarType dtype, int count=-1, int offset=0, "
          "bool requires_grad=False)")
def frombuffer(buffer: Any, dtype: Any, count: int, offset: int, requires_grad: bool) -> Tensor:
    """A 1-D tensor on the memory of an object with a buffer."""
    target: Any = as_numpy_dtype(dtype)
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({length} bytes) minus 1")
    left, size = length - offset, target.itemsize
    if count > 0 and offset + count * size > length:
        raise ValueError(f"requested buffer length ({count} * {size} bytes) after offset ({offset} "
                         f"bytes) must not be greater than actual buffer length ({length} bytes)")
    if count < 0 and left % size:
        raise ValueError(f"buffer length ({left} bytes) after offset ({offset} bytes) must be a "
                         f"multiple of element size ({size})")
    if memoryview(buffer).readonly:
        warn_once("The given buffer is not writable, and PyTorch does not support non-writable "
                  "tensors. This means you can write to the underlying (supposedly non-writable) "
                  "buffer using the tensor. You may want to copy the buffer to protect its data or "
                  "make it writable before converting it to a tensor. This type of warning will be "
                  "suppressed for the rest of this program.")
    return finish(np.frombuffer(buffer, target, max(count, -1), offset), None, requires_grad)


__all__ = ["array_of", "creation", "tensor"]
