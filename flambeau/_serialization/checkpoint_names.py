"""What PyTorch's checkpoint files call things, and how flambeau makes them.

A checkpoint is a pickle in which tensors are calls of a few functions that PyTorch keeps under
fixed names, such as ``torch._utils._rebuild_tensor_v2``. This module holds these functions, the
table of names, and, for writing, the call that stands for an object.
"""

from __future__ import annotations

import _codecs
import copyreg
import functools
import importlib
import math
import sys
from collections import Counter, OrderedDict
from operator import attrgetter
from typing import Any

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.core import dtypes, type_info
from flambeau.core.calling.overrides import sparse_types
from flambeau.core.shapes import Size, contiguous_strides
from flambeau.core.tensor import array_offset, array_root, array_strides, arrays_of, wrap
from flambeau.ops.view.conjugate_views import below
from flambeau.storage import TypedStorage, UntypedStorage, dense_bytes, storage_of
from flambeau.transforms.meta import MetaTensor

# Reading ------------------------------------------------------------------------------------------


def rebuild_tensor(storage: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """The view of a typed storage with this offset, size and stride (in elements)."""
    return _view(storage.untyped(), storage.dtype, offset, size, stride)


def rebuild_tensor_v2(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool,
                      backward_hooks: Any, metadata: Any = None) -> Tensor:
    """`rebuild_tensor`, with its `requires_grad` and lazy conjugation or negation."""
    return _finish(rebuild_tensor(storage, offset, size, stride), requires_grad, metadata)


def rebuild_tensor_v3(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool,
                      backward_hooks: Any, dtype: Any, metadata: Any = None) -> Tensor:
    """`rebuild_tensor_v2` for a dtype that has no storage type of its own."""
    return _finish(_view(storage.untyped(), dtype, offset, size, stride), requires_grad, metadata)


def _finish(tensor: Tensor, requires_grad: bool, metadata: Any) -> Tensor:
    metadata = metadata or {}
    if metadata.get("conj"):
        tensor = tensor.conj()
    if metadata.get("neg"):
        tensor = flambeau._neg_view(tensor)
    return tensor.requires_grad_() if requires_grad else tensor


def _view(storage: UntypedStorage, dtype: Any, offset: int, size: Any, stride: Any) -> Tensor:
    size, stride = tuple(size), tuple(stride)
    if storage.device.type == "meta":
        return flambeau.empty_strided(size, stride, dtype=dtype, device="meta")
    itemsize = dtype.itemsize
    if any(step < 0 for step in stride) or offset < 0 or len(size) != len(stride):
        raise RuntimeError(f"a tensor of sizes {list(size)}, strides {list(stride)} and storage "
                           f"offset {offset} is not possible")
    empty = 0 in size
    last = -1 if empty else sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    needed = 0 if empty else (offset + last + 1) * itemsize
    if needed > storage.nbytes():
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {storage.nbytes()}"
        )
    if empty:
        return wrap(np.empty(size, dtype.numpy))
    root = storage._root
    if not offset and root.dtype == dtype.numpy and root.size == last + 1 == math.prod(size) and (
            stride == contiguous_strides(size)):
        return wrap(root.reshape(size))
    steps = [step * itemsize for step in stride]
    return wrap(np.ndarray(size, dtype.numpy, storage._bytes, offset * itemsize, steps))


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    return flambeau.nn.Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any,
                                 state: Any) -> Tensor:
    return set_state(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    return flambeau.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta",
                                  requires_grad=requires_grad)


def rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    if layout is flambeau.sparse_coo:
        indices, values, size, *coalesced = data
        result = flambeau.sparse_coo_tensor(indices, values, size, check_invariants=True)
        return result._coalesced_(True) if coalesced and coalesced[0] else result
    outer, inner, values, size = data
    return flambeau.sparse_compressed_tensor(outer, inner, values, size, layout=layout,
                                             check_invariants=True)


def rebuild_quantized_tensor(storage: Any, offset: int, size: Any, stride: Any, how: Any,
                             requires_grad: bool, backward_hooks: Any) -> Tensor:
    """The integers in a typed storage, with what they mean: the scheme, scale and zero point; or
    scales, zero points and the dimension of the channels."""
    from flambeau.ops.quantized.tensors import Scheme, make_quantized
    integers = _view(storage.untyped(), _plain_type(storage.dtype), offset, size, stride)
    scheme, scale, zero_point, *axis = how
    if scheme is flambeau.per_tensor_affine:
        return make_quantized(arrays_of([integers])[0],
                              Scheme(storage.dtype, float(scale), int(zero_point)))
    if scheme not in (flambeau.per_channel_affine, flambeau.per_channel_affine_float_qparams):
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {scheme}")
    scales, zeros = arrays_of([scale])[0], arrays_of([zero_point])[0]
    floating = zeros.dtype.kind == "f"
    return make_quantized(arrays_of([integers])[0], Scheme(
        storage.dtype, scales.astype(np.float32 if floating else np.float64),
        zeros.astype(np.float32 if floating else np.int64), int(axis[0])))


def _plain_type(dtype: Any) -> Any:
    """The type of the integers of a quantised one."""
    plain = {flambeau.quint8: flambeau.uint8, flambeau.qint8: flambeau.int8,
             flambeau.qint32: flambeau.int32}
    if dtype not in plain:
        raise NotImplementedError(f"tensors of dtype {dtype} in PyTorch's files")
    return plain[dtype]


def rebuild_from_type(function: Any, cls: type, args: Any, state: Any) -> Tensor:
    """A tensor of a subclass, or one with attributes of its own."""
    result = function(*args)
    if type(result) is not cls:
        result = result.as_subclass(cls)
    if getattr(cls, "__setstate__", None) is not Tensor.__setstate__:
        result.__setstate__(state)
        return result
    return set_state(result, state)


def attributes_of(state: Any) -> dict[str, Any]:
    """The attributes that an object was saved with, those in slots included."""
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    return {**(attributes or {}), **(slots or {})}


def set_state(tensor: Tensor, state: Any) -> Tensor:
    """Give a tensor the attributes that it was saved with."""
    for name, value in attributes_of(state).items():
        if hasattr(Tensor, name):
            raise RuntimeError(f"a saved attribute must not replace Tensor.{name}")
        setattr(tensor, name, value)
    return tensor


def get_layout(name: str) -> Any:
    return _named(name, type_info.layout)


def _named(name: str, kind: type) -> Any:
    found = getattr(flambeau, name.removeprefix("torch."), None)
    if not isinstance(found, kind):
        raise RuntimeError(f"{name} is not a {kind.__name__} that flambeau has")
    return found


def encode(text: str, encoding: str = "utf-8") -> bytes:
    """How pickles of protocol 2 hold bytes; not every codec, since some do much else."""
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise RuntimeError(f"bytes in checkpoints are encoded as latin1 or utf-8, not {encoding!r}")
    return _codecs.encode(text, encoding)


def rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, offsets: Tensor) -> Any:
    """A nested tensor of layout `strided` of the elements of a vector."""
    return flambeau._nested_view_from_buffer(buffer, sizes, strides, offsets)


_FUNCTIONS = {
    "torch._utils._rebuild_nested_tensor": rebuild_nested_tensor,
    "torch._utils._rebuild_tensor": rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter_with_state,
    "torch._utils._rebuild_meta_tensor_no_storage": rebuild_meta_tensor,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    "torch._utils._rebuild_qtensor": rebuild_quantized_tensor,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch.serialization._get_layout": get_layout,
    "_codecs.encode": encode,
}
for _name, _function in _FUNCTIONS.items():
    if _name.startswith("torch."):          # pickles that are no checkpoints name them so, too
        _home, _, _function.__qualname__ = _name.rpartition(".")
        _function.__name__ = _function.__qualname__
        _function.__module__ = _home.replace("torch", __name__.partition(".")[0], 1)

_STORAGE_NAMES = ("Double", "Float", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte",
                  "Bool", "ComplexFloat", "ComplexDouble", "QUInt8", "QInt8", "QInt32")


@functools.cache
def allowed_globals() -> dict[str, Any]:
    """All that a pickle may name when only data is to be loaded, by PyTorch's names."""
    from flambeau import storage

    table: dict[str, Any] = dict(_FUNCTIONS)
    table |= {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": flambeau.device,
        "torch.storage.UntypedStorage": UntypedStorage,
        "torch.storage.TypedStorage": TypedStorage,
    }
    for name in _STORAGE_NAMES:
        cls = getattr(storage, f"{name}Storage")
        table[f"torch.{name}Storage"] = table[f"torch.cuda.{name}Storage"] = cls
    for value in (*vars(dtypes).values(), *vars(type_info).values(), *(
            getattr(flambeau, name) for name in ("quint8", "qint8", "qint32", "quint4x2",
                                                 "quint2x4"))):
        if isinstance(value, dtypes.dtype | type_info.qscheme):
            table[repr(value)] = value
    return table


PARAMETER = "torch.nn.parameter.Parameter"
_JAGGED = "torch.nested._internal.nested_tensor"
# Allowed, too, but what has them is not always loaded.
LATE = frozenset({PARAMETER, f"{_JAGGED}.NestedTensor", f"{_JAGGED}._rebuild_njt",
                  "torch._dynamo.decorators._DimRange"})


def is_parameter_type(cls: type) -> bool:
    module = sys.modules.get("flambeau.nn.parameter")
    return module is not None and cls is module.Parameter


@functools.cache
def _names() -> dict[int, str]:
    """`allowed_globals`, backwards; the first name of an object counts."""
    names: dict[int, str] = {}
    for name, value in allowed_globals().items():
        names.setdefault(id(value), name)
    return names


def global_name(obj: Any, name: str) -> tuple[str, str] | None:
    """Module and name under which a file refers to an object of flambeau; None for others."""
    known = PARAMETER if is_parameter_type(obj) else _names().get(id(obj))
    if known is not None:
        module, _, attribute = known.rpartition(".")
        return module, attribute
    module = getattr(obj, "__module__", None)
    if isinstance(module, str) and (module == "flambeau" or module.startswith("flambeau.")):
        return "torch" + module.removeprefix("flambeau"), name
    return None


def find_global(module: str, name: str) -> Any:
    """What a file calls ``module.name``, for loading that trusts the file."""
    known = allowed_globals().get(f"{module}.{name}")
    if known is not None:
        return known
    package, _, rest = module.partition(".")
    if package != "torch":
        raise LookupError(name)
    # A class may live in another module here; the packages above it export it.
    path = "flambeau" + ("." + rest if rest else "")
    while path:
        try:
            return attrgetter(name)(importlib.import_module(path))
        except AttributeError:
            pass
        except ModuleNotFoundError as error:
            if error.name is None or not path.startswith(error.name):
                raise
        path = path.rpartition(".")[0]
    raise AttributeError(f"the file names {module}.{name}, which flambeau does not have")


# Writing ------------------------------------------------------------------------------------------


def reduce_for_checkpoint(obj: Any) -> Any:
    """The call that makes `obj` again, in PyTorch's terms; NotImplemented for ordinary objects."""
    if isinstance(obj, Tensor):
        return obj.__reduce_ex__(2)
    if isinstance(obj, Size):
        return Size, (tuple(obj),)
    if isinstance(obj, flambeau.device):
        return flambeau.device, ((obj.type,) if obj.index is None else (obj.type, obj.index))
    if isinstance(obj, type_info.layout):
        return _reduce_layout(obj)
    if isinstance(obj, type_info.memory_format):
        raise TypeError("cannot pickle 'module' object")    # as PyTorch, whose files have none
    return NotImplemented


def _reduce_layout(layout: type_info.layout) -> tuple[Any, ...]:
    return get_layout, (repr(layout),)


copyreg.pickle(type_info.layout, _reduce_layout)


def reduce_parameter(tensor: Tensor) -> Any:
    meta = tensor.device.type == "meta"
    data = tensor.detach() if meta else wrap(arrays_of([tensor])[0])
    args: tuple[Any, ...] = (data, tensor.requires_grad, OrderedDict())
    state = _state(tensor)
    return (rebuild_parameter_with_state, (*args, state)) if state else (rebuild_parameter, args)


def reduce_tensor(tensor: Tensor) -> Any:
    if tensor.is_quantized:
        return _reduce_quantized(tensor)
    turned = tensor._conjugated or tensor._negated
    cls = Tensor if turned or type(tensor) is MetaTensor or type(tensor) in sparse_types \
        else type(tensor)
    state = _state(tensor)
    call = _reduce_plain(tensor)
    return call if cls is Tensor and not state else (rebuild_from_type, (call[0], cls, call[1],
                                                                         state))


def _reduce_quantized(tensor: Any) -> Any:
    _plain_type(tensor.dtype)
    integers = tensor.int_repr()
    name = tensor.qscheme()
    how = (name, tensor.q_scale(), tensor.q_zero_point()) \
        if name is flambeau.per_tensor_affine else (
            flambeau.per_channel_affine, tensor.q_per_channel_scales(),
            tensor.q_per_channel_zero_points(),
            tensor.q_per_channel_axis())
    array, storage = _array_and_storage(integers)
    typed = TypedStorage(wrap_storage=storage, dtype=tensor.dtype)
    return rebuild_quantized_tensor, (
        typed, array_offset(array) // array.itemsize, array.shape, array_strides(array), how, False,
        OrderedDict())


def _state(tensor: Tensor) -> dict[str, Any]:
    """The attributes that the user has given a tensor."""
    known = type(tensor) if type(tensor) in sparse_types else Tensor
    return {name: value for name, value in tensor.__dict__.items() if not hasattr(known, name)}


def _reduce_plain(tensor: Tensor) -> tuple[Any, tuple[Any, ...]]:
    if tensor.layout is not flambeau.strided:
        return rebuild_sparse_tensor, (tensor.layout, _sparse_parts(tensor))
    requires_grad = tensor.requires_grad
    if tensor.device.type == "meta":
        shape = tuple(tensor.shape)
        return rebuild_meta_tensor, (tensor.dtype, shape, contiguous_strides(shape), requires_grad)
    turned = {"conj": True} if tensor._conjugated else {}
    if tensor._negated:
        turned["neg"] = True
    array, storage = _array_and_storage(below(tensor) if turned else tensor)
    place: Any = (array_offset(array) // array.itemsize, array.shape, array_strides(array),
             requires_grad, OrderedDict())
    metadata = (turned,) if turned else ()
    try:
        typed = TypedStorage(wrap_storage=storage, dtype=tensor.dtype)
        typed.pickle_storage_type()
    except KeyError:
        return rebuild_tensor_v3, (storage, *place, tensor.dtype, *metadata)
    return rebuild_tensor_v2, (typed, *place, *metadata)


def _array_and_storage(tensor: Tensor) -> tuple[np.ndarray, UntypedStorage]:
    """Array and memory of a tensor; those of a copy where a file could not describe them."""
    array = arrays_of([tensor])[0]
    root = array_root(array)
    size = array.itemsize
    if root is array and array.flags.c_contiguous and array.dtype.isnative:
        return array, storage_of(tensor)
    if (root.nbytes % size or array_offset(array) % size or any(s % size for s in array.strides)
            or any(s < 0 for s in array.strides) or array.dtype.byteorder == ">"
            or dense_bytes(root) is None):
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        return array, storage_of(wrap(array))
    return array, storage_of(tensor)


def _sparse_parts(tensor: Tensor) -> tuple[Any, ...]:
    if tensor.layout is flambeau.sparse_coo:
        return tensor._indices(), tensor._values(), tensor.shape, tensor.is_coalesced()
    if tensor.layout in (flambeau.sparse_csr, flambeau.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values(), tensor.shape
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values(), tensor.shape
