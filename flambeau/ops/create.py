"""Making tensors: from data, from a value, from a range."""
from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from functools import update_wrapper
from math import prod
from typing import Any

import numpy as np

from flambeau import type_info
from flambeau._settings import warn_once
from flambeau.core import devices, dtypes, fast, overrides
from flambeau.core.dtypes import as_numpy_dtype, default_float, from_numpy_dtype
from flambeau.core.modes import intercept, interceptors, is_inference_mode_enabled
from flambeau.core.op import Op, checked_arguments, into, public, table
from flambeau.core.promotion import convert, type_name
from flambeau.core.shapes import Size, contiguous_strides, size_of
from flambeau.core.tensor import LEAF, Tensor, alias, array_root, basis, new_tensor, plain, wrap
from flambeau.kernels import views
from flambeau.kernels.refused import characters, no_kernel
from flambeau.ops.coercion import beyond_c, stored
from flambeau.schema.errors import type_name as type_name_of
from flambeau.schema.recorded import complaint
from flambeau.transforms import meta


def finish(array: np.ndarray, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf tensor around `array`."""
    where = devices.checked(device)
    if where is not devices.cpu:
        result = alias(meta.laid_out_as(array) if array.flags.writeable else array, meta.MetaTensor)
    else:
        result = new_tensor()
        result._array = array
        result._base = result._counter = result._edge = None
    if requires_grad:
        if array.dtype not in dtypes.FLOATING:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require "
                               "gradients")
        result._edge = LEAF
    if is_inference_mode_enabled():
        result._inference = True
    return result


def creation(function: Any, make: Any = None) -> Any:
    """Publish a function that makes tensors: of a shape by `make(shape, dtype)`, if that is all."""
    name = function.__name__
    op = Op(name, "creation", composite=True, namespace="torch", doc=function.__doc__)

    def call(*args: Any, **kwargs: Any) -> Any:
        if interceptors:
            return intercept(op, args, kwargs)
        return function(*args, **kwargs)
    published = fast.callable_of("creation" if make is None else "filled", op,
                                 update_wrapper(call, function), make or function)
    op.direct = op.body = function
    op.function = op.call = op.published = published
    table[name] = op
    published.op = op
    published.__module__ = "torch"
    public["torch"][name] = published
    return published


# ---- from data -----------------------------------------------------------------------------------


@creation
def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           pin_memory: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested sequences, an array or a tensor.

    The type is that of the data: float32 (the default) for floats, int64 for ints, bool for bools.

    >>> import flambeau
    >>> flambeau.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    if isinstance(data, Tensor):
        import warnings
        warnings.warn("To copy construct from a tensor, it is recommended to use "
                      "sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than "
                      "torch.tensor(sourceTensor).", UserWarning, stacklevel=2)
    return finish(array_of(data, dtype, copy=True), device, requires_grad)


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
        array = data._array
        return views.copy(array) if target is None or target == array.dtype \
            else convert(array, target)
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        if kind is np.str_ or kind is np.bytes_:
            raise TypeError(f"new(): invalid data type 'numpy.{kind.__name__}'")
        _check_readable(array)
        if target is not None and target != array.dtype:
            return _convert_new(array, target)
        return views.copy(array) if copy else array
    if isinstance(data, (list, tuple)) or (isinstance(data, Sequence)
                                           and not isinstance(data, (str, bytes))):
        return _from_sequence(data, target)
    if isinstance(data, (str, bytes)) or data is None or isinstance(data, Mapping):
        raise _no_number(data, target)
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return array_of(np.asarray(data), dtype, copy)
    if hasattr(data, "__dlpack__"):
        return array_of(np.from_dlpack(data), dtype, copy)
    if isinstance(data, numbers.Number) or hasattr(data, "__float__"):
        return array_of(int(data) if isinstance(data, numbers.Integral) else float(data), dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return _from_sequence([data[i] for i in range(len(data))], target)
    raise _no_number(data, target)


def _no_number(data: Any, target: np.dtype | None) -> Exception:
    """What is said of something that is no number of the type, which is None if it is to be
    found."""
    name = type(data).__name__
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


def _from_number(data: Any, target: np.dtype | None) -> np.ndarray:
    if target is None:
        natural = {bool: np.bool_, int: np.int64}.get(type(data))
        try:
            return np.array(data, natural or dtypes.default_complex())
        except OverflowError:
            raise ValueError("Overflow when unpacking long long") from None
    if type(data) in (int, float) and target.kind in "ui":
        if type(data) is int and not -2**63 <= data < 2**64:
            raise ValueError("Overflow when unpacking long long")
        try:
            return np.array(stored(data, target), target)
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
        return convert(array, dtypes.default_complex())
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


def _is_sequence(data: Any) -> bool:
    return isinstance(data, (list, tuple)) or (
        hasattr(data, "__len__") and hasattr(data, "__getitem__")
        and not isinstance(data, (str, bytes, Tensor, np.ndarray, Mapping)))


def _nested_shape(data: Any) -> tuple[int, ...]:
    """The shape that the first items of nested sequences show. A tensor among them is a number."""
    shape = []
    while _is_sequence(data):
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
        elif _is_sequence(item):
            raise _no_number(item, target or (leaves[0].dtype if leaves else default_float()))
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


@creation
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing memory with it where its type allows (an array, a tensor)."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(
            device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and (dtype is None or as_numpy_dtype(dtype) == data.dtype):
        return finish(from_numpy(data)._array, device)
    return finish(array_of(data, dtype), device)


@creation
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool | None = None) -> Tensor:
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
        result = result.requires_grad_()
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


@creation
def from_numpy(ndarray: np.ndarray, /) -> Tensor:
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
        import warnings
        warnings.warn("The given NumPy array is not writable, and PyTorch does not support "
                      "non-writable tensors. This means writing to this tensor will result in "
                      "undefined behavior. You may want to copy the array to protect its data or "
                      "make it writable before converting it to a tensor. This type of warning "
                      "will be suppressed for the rest of this program.", UserWarning, stacklevel=2)
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


@creation
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule.

    `copy=True` copies; the only device is the CPU.

    >>> import flambeau, numpy
    >>> array = numpy.zeros(2)
    >>> flambeau.from_dlpack(array)[0] = 1
    >>> array
    array([1., 0.])
    """
    if device is not None and devices.device(device).type != "cpu":
        raise RuntimeError(f"from_dlpack: device {device} is not available")
    if not hasattr(ext_tensor, "__dlpack__"):
        if type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError("from_dlpack received an invalid capsule. Note that DLTensor "
                               "capsules can be consumed only once, so you might have already "
                               "constructed a tensor from it once.")
        ext_tensor = _Capsule(ext_tensor)
    array = np.from_dlpack(ext_tensor)
    if copy:
        array = array.copy()
    elif type(ext_tensor) is _Capsule:
        array = np.asarray(_Writable(array))    # NumPy does not know whether it may write
    return wrap(array)


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


@creation
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0,
               requires_grad: bool = False) -> Tensor:
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
                  "tensors: a write to the tensor would be a write to the buffer.")
    return finish(np.frombuffer(buffer, target, max(count, -1), offset), None, requires_grad)


# ---- filled with a value -------------------------------------------------------------------------


def _filled(name: str, make: Any, doc: str) -> Any:
    def function(*size: Any, out: Any = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
                 memory_format: Any = None, names: Any = None, **kwargs: Any) -> Tensor:
        if kwargs:
            size = _size_keyword(name, size, kwargs)
        shape = checked_shape(name, size)
        target = type_for(out, dtype) if out is not None or dtype is not None else default_float()
        where = devices.checked(device)
        if layout is not None and layout is not type_info.strided:
            from flambeau.ops.sparse import without_entries
            return without_entries(name, shape, target, layout, requires_grad)
        array = make(shape, target) if where is devices.cpu else meta.hollow(shape, target)
        if memory_format is not None and memory_format is not type_info.contiguous_format:
            from flambeau.ops.copying import _copied
            array = _copied(array, "channels_last")
        result = finish(array, where, requires_grad)
        return result if out is None else into(out, table[name], result)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return creation(function, make)


def _no_size(name: str, size: tuple[Any, ...]) -> TypeError:
    """What `name` says of sizes that are not all integers."""
    sizes = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    kinds = [type(s).__name__ for s in sizes]
    first = next((i for i, s in enumerate(sizes) if not isinstance(s, int)), 0)
    what = f"{name}(): argument 'size' "
    if first:
        return TypeError(f"{what}failed to unpack the object at pos {first + 1} with error \"type "
                         f'must be tuple of ints,but got {kinds[first]}"')
    if sizes is not size:
        return TypeError(f"{what}(position 1) must be tuple of ints, but found element of type "
                         f"{kinds[0]} at pos 0")
    return TypeError(f"{what}(position 1) must be tuple of ints, not {kinds[0]}")


def checked_shape(name: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape that the arguments of `name` say."""
    if len(size) == 1 and isinstance(size[0], Tensor):
        if size[0]._array.size != 1 or size[0]._array.dtype.kind not in "iu":
            raise _no_size(name, size)
        size = (int(size[0]),)
    try:
        shape = size_of(size)
    except TypeError:
        raise _no_size(name, size) from None
    if shape and min(shape) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: "
                           f"{list(shape)}")
    if shape and prod(shape) >= 2**60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return shape


def _size_keyword(name: str, size: Any, kwargs: dict[str, Any]) -> Any:
    if "size" in kwargs and not size:
        size = (kwargs.pop("size"),)
    if kwargs:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return size


zeros = _filled("zeros", np.zeros, """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`.

    >>> import flambeau
    >>> flambeau.zeros(2)
    tensor([0., 0.])
    """)
ones = _filled("ones", np.ones, """A tensor of ones: `ones(2, 3)` or `ones((2, 3))`.""")
empty = _filled("empty", np.empty, """A tensor with whatever values its memory had.""")


@creation
def full(size: Any, fill_value: Any, *, out: Any = None, dtype: Any = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
         names: Any = None) -> Tensor:
    """A tensor of shape `size` filled with `fill_value`, whose type it takes."""
    value = fill_value
    if isinstance(value, Tensor) and not (value._array.ndim or value.requires_grad):
        value = value.item()
    if not isinstance(value, (int, float, complex, np.number, np.bool_)):
        raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not "
                        f"{type(value).__name__}")
    value = value.item() if isinstance(value, np.generic) else value
    if type(value) is int and not -2**63 <= value < 2**64:
        raise beyond_c(value)
    target = array_of(value).dtype if dtype is None and out is None else type_for(out, dtype)
    where, number = devices.checked(device), convert(np.asarray(stored(value, target)), target)
    shape = checked_shape("full", (size,))
    if where is devices.cpu:
        array = np.empty(shape, target)
        array[...] = number
    else:
        array = meta.hollow(shape, target)
    result = finish(array, where, requires_grad)
    return result if out is None else into(out, full.op, result)


def type_for(out: Tensor | None, dtype: Any) -> np.dtype:
    """The type of a new tensor: `dtype`, that of `out=`, or the default."""
    wanted = as_numpy_dtype(dtype)
    if out is None:
        return default_float() if wanted is None else wanted
    if wanted is not None and wanted != out._array.dtype:
        raise RuntimeError(f"dtype {type_name(from_numpy_dtype(wanted))} does not match dtype of "
                           f"out parameter ({type_name(out.dtype)})")
    return out._array.dtype


@creation
def eye(n: int, m: int | None = None, *, out: Any = None, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A matrix with ones on the diagonal."""
    for position, (name, value) in enumerate((("n", n), ("m", m)), 1):
        if value is not None and (isinstance(value, float) or not hasattr(value, "__index__")):
            raise TypeError(f"eye(): argument '{name}' (position {position}) must be int, not "
                            f"{type(value).__name__}")
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    target = type_for(out, dtype)
    if target.char in characters("UW"):
        raise no_kernel("eye", target)
    result = finish(np.eye(n, m, dtype=target), device, requires_grad)
    return result if out is None else into(out, eye.op, result)


def _like(name: str, doc: str) -> Any:
    make = public["torch"][name]

    def function(input: Tensor, *args: Any, dtype: Any = None, layout: Any = None,
                 device: Any = None, requires_grad: bool = False, memory_format: Any = None,
                 pin_memory: bool = False, **kwargs: Any) -> Tensor:
        if type(input) not in plain:
            if overrides.wanted((input,)):
                given = {"dtype": dtype, "layout": layout, "device": device,
                         "requires_grad": requires_grad or None, "memory_format": memory_format,
                         "pin_memory": pin_memory or None, **kwargs}
                return overrides.handle_torch_function(
                    published, (input,), input, *args,
                    **{k: v for k, v in given.items() if v is not None})
            if hasattr(input, "_value"):
                return basis.like_wrapped(function, input, args, dtype)
        target = input.dtype if dtype is None else dtype
        where = input._device if device is None else devices.checked(device)
        own = input._array
        shape = own.shape
        dense = own.flags.c_contiguous or not own.size \
            or memory_format not in (None, type_info.preserve_format)
        order = None if dense or where is not devices.cpu else views.memory_order(own)
        extents = shape if order is None else [shape[d] for d in order]
        if name == "full":
            value = args[0] if args else kwargs["fill_value"]
            result = make(extents, value, dtype=target, device=where)
        else:
            result = make(extents, dtype=target, device=where)
        if order is not None:
            result._array = views.in_order(result._array, order)
        elif not dense:
            result._array = meta.enlarged(meta.miniature(own), shape, result._array.dtype)
        elif memory_format not in (None, type_info.preserve_format, type_info.contiguous_format):
            result = basis.contiguous(result, memory_format=memory_format)
        if requires_grad:
            result.requires_grad = True
        return result
    function.__name__ = function.__qualname__ = f"{name}_like"
    function.__doc__ = doc
    published = creation(function)
    return published


zeros_like = _like("zeros", "Zeros in the shape, type and layout of `input`.")
ones_like = _like("ones", "Ones in the shape, type and layout of `input`.")
empty_like = _like("empty", "An uninitialised tensor in the shape, type and layout of `input`.")
full_like = _like("full", "`fill_value` in the shape, type and layout of `input`.")


def like_wrapped(function: Any, input: Tensor, args: Any, dtype: Any) -> Tensor:
    """A `*_like` of a wrapper: the same of what it wraps."""
    made = function(input._value, *args, dtype=dtype)
    return input._level.wrap(made, input._bdim)


def _new(name: str) -> Any:
    make = public["torch"][name]

    def body(self: Tensor, *size: Any, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             **kwargs: Any) -> Tensor:
        if hasattr(self, "_level"):             # one slice of a batch: a new tensor for each
            one = make(*size, dtype=self.dtype if dtype is None else dtype, **kwargs)
            return self._level.repeated(one)
        return make(*size, dtype=self.dtype if dtype is None else dtype,
                    device=self._device if device is None else device,
                    requires_grad=requires_grad, **kwargs)

    op = Op(f"new_{name}", "creation", composite=True, namespace=None, body=body)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if interceptors:
            return intercept(op, (self, *args), kwargs)
        if type(self) not in plain and overrides.wanted((self,)):
            return overrides.call(op, (self, *args), kwargs)
        return body(self, *args, **kwargs)
    op.direct, op.function, op.call, op.published = body, method, method, method
    method.__name__ = method.__qualname__ = f"new_{name}"
    method.__doc__ = f"`{name}` with this tensor's type and device unless given."
    return method


for _name in ("zeros", "ones", "empty", "full", "tensor"):
    setattr(Tensor, f"new_{_name}", checked_arguments(_new(_name)))


@creation
def scalar_tensor(s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                  pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A 0-d tensor that holds the number `s`, in the default floating type unless said otherwise.

    >>> import flambeau
    >>> flambeau.scalar_tensor(2)
    tensor(2.)
    """
    return full((), s, dtype=from_numpy_dtype(default_float()) if dtype is None else dtype,
                device=device, requires_grad=requires_grad)


@creation
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False,
                   pin_memory: bool = False) -> Tensor:
    """An uninitialised tensor without gaps, whose dimensions lie in memory in the given order, the
    outermost first.

    >>> import flambeau
    >>> flambeau.empty_permuted((2, 3, 4), (1, 0, 2)).stride()
    (4, 8, 1)
    """
    shape, order = size_of((size,)), size_of((physical_layout,))
    if len(shape) != len(order):
        raise RuntimeError("Number of dimensions in size does not match the length of the "
                           f"physical_layout; i.e. len(size) = {len(shape)} is not equal to "
                           f"len(physical_layout) = {len(order)}")
    steps = [0] * len(shape)
    extent = 1
    for i, dim in reversed(list(enumerate(order))):
        if not 0 <= dim < len(shape):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and "
                               f"{len(shape) - 1}, but got {dim} at index {i}).  NB: negative dims "
                               "not currently supported; file an issue if you want it.")
        if dim in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
        steps[dim] = extent
        extent *= max(shape[dim], 1)
    return empty_strided(shape, steps, dtype=dtype, device=device, requires_grad=requires_grad)


@creation
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None,
                  device: Any = None, requires_grad: bool = False,
                  pin_memory: bool = False) -> Tensor:
    """An uninitialised tensor with the given strides (in elements)."""
    target = default_float() if dtype is None else as_numpy_dtype(dtype)
    shape, steps = checked_shape("empty_strided", (size,)), size_of((stride,))
    if len(shape) != len(steps):
        raise RuntimeError(f"dimensionality of sizes ({len(shape)}) must match dimensionality of "
                           f"strides ({len(steps)})")
    if steps and min(steps) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and "
                           f"strides={list(steps)}")
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, steps)) if 0 not in shape else 0
    where = devices.checked(device)
    memory = np.empty(extent, target) if where is devices.cpu else meta.memory(extent, target)
    array = np.ndarray(shape, target, memory, 0, tuple([s * target.itemsize for s in steps]))
    return finish(array, where, requires_grad)


# ---- the historical constructor ------------------------------------------------------------------


def legacy_constructor(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Tensor()`, `Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`."""
    if len(args) + len(kwargs) == 1:
        other = args[0] if args else kwargs.get("other")
        if isinstance(other, Tensor):
            return _another(other, cls)
    return _legacy(cls, dtypes.get_default_dtype(), args, kwargs)


def _another(source: Tensor, cls: type) -> Tensor:
    """Another tensor with the same memory, which is a view of the first."""
    if source._edge is not None or source._device is not devices.cpu:
        return basis.graph_alias(source) if cls is Tensor else source.as_subclass(cls)
    if source._conjugated or source._negated:
        return alias(basis.resolved(source)._array, cls)
    result = alias(source._array, cls)
    result._counter = source._counter
    return result


def _legacy(cls: type, target: dtypes.dtype, args: tuple[Any, ...], kwargs: dict[str, Any]
            ) -> Any:
    plain = not kwargs and (all(type(a) is int for a in args) or (
        len(args) == 1 and type(args[0]) in (list, tuple, np.ndarray)))
    if not plain and (said := complaint("new", args, kwargs, True)):
        raise TypeError(said)
    device = kwargs.get("device")
    if device is not None and devices.device(device).type != "cpu":
        raise RuntimeError("legacy constructor expects device type: cpu but device type: "
                           f"{devices.device(device).type} was passed")
    data = next(iter((*args, *[kwargs[k] for k in ("other", "data", "size") if k in kwargs])), ())
    if isinstance(data, Tensor):
        if data.dtype is not target:
            raise TypeError(f"expected {_options(target)} (got {_options(data.dtype)})")
        return _another(data, cls)
    if isinstance(data, (int, Size)) and type(data) is not bool:
        return alias(np.empty(checked_shape("new", args), target.numpy), cls)
    if not args and not kwargs:
        return alias(np.empty(0, target.numpy), cls)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, np.ndarray) and not _is_sequence(data):
        raise TypeError(f"new(): data must be a sequence (got {type_name_of(data)})")
    return alias(array_of(data, target), cls)


def _options(d: dtypes.dtype) -> str:
    """What PyTorch prints of a tensor's type, layout and place."""
    name = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int",
            "int16": "short int", "int8": "signed char", "uint8": "unsigned char",
            "float16": "c10::Half", "bfloat16": "c10::BFloat16"}.get(d.name, d.name)
    return (f"TensorOptions(dtype={name}, device=cpu, layout=Strided, requires_grad=false "
            "(default), pinned_memory=false (default), memory_format=(nullopt))")


def typed_constructor(name: str, target: dtypes.dtype) -> type:
    """`FloatTensor` and its kind: makes tensors of one type, and knows its instances."""
    class Meta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, Tensor) and instance.dtype is target

        def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
            return _legacy(Tensor, target, args, kwargs)

    made = Meta(name, (), {"__module__": "torch", "dtype": target,
                           "__doc__": f"Makes tensors of type {target.name}."})
    public["torch"][name] = made
    return made


LEGACY_TYPES = {"FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64,
                "HalfTensor": dtypes.float16, "BFloat16Tensor": dtypes.bfloat16,
                "ByteTensor": dtypes.uint8, "CharTensor": dtypes.int8,
                "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32,
                "LongTensor": dtypes.int64, "BoolTensor": dtypes.bool_}
for _name, _target in LEGACY_TYPES.items():
    typed_constructor(_name, _target)
_TYPE_NAMES = {target: name for name, target in LEGACY_TYPES.items()} | {
    dtypes.complex32: "ComplexHalfTensor",
    dtypes.complex64: "ComplexFloatTensor", dtypes.complex128: "ComplexDoubleTensor"}


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The historical name of the tensor's type, or the tensor as another type."""
    if dtype is None:
        return f"torch.{'sparse.' * self.is_sparse}{type_name(self.dtype)}Tensor"
    if isinstance(dtype, str):
        names = {f"torch.{place}{name}": target for target, name in _TYPE_NAMES.items()
                 for place in ("", "sparse.")}
        if dtype not in names:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = names[dtype]
    elif isinstance(dtype, type) and hasattr(dtype, "dtype"):
        dtype = dtype.dtype
    return self.to(dtype)


Tensor.type = checked_arguments(type_, name="type")
basis.legacy_constructor, basis.like_wrapped = legacy_constructor, like_wrapped
basis.zeros_like, basis.ones_like, basis.empty_like = zeros_like, ones_like, empty_like
__all__ = ["array_of", "contiguous_strides", "finish", "tensor"]
