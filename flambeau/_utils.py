"""Functions that checkpoints name, and small ones that libraries take from here."""
from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._serialization import checkpoint_names as _names
from flambeau.core.devices import device as Device

__all__: list[str] = []

_rebuild_tensor = _names.rebuild_tensor
_rebuild_tensor_v2 = _names.rebuild_tensor_v2
_rebuild_tensor_v3 = _names.rebuild_tensor_v3
_rebuild_parameter = _names.rebuild_parameter
_rebuild_parameter_with_state = _names.rebuild_parameter_with_state
_rebuild_meta_tensor_no_storage = _names.rebuild_meta_tensor
_rebuild_sparse_tensor = _names.rebuild_sparse_tensor
_rebuild_qtensor = _names.rebuild_quantized_tensor
_rebuild_nested_tensor = _names.rebuild_nested_tensor


def _element_size(dtype: Any) -> int:
    """The bytes of an element."""
    return dtype.itemsize


# ---- pieces along another dimension -------------------------------------------------------------

def _maybe_view_chunk_cat(res: Tensor, group_size: int, gather_dim: int) -> Tensor:
    """`group_size` tensors that lie one behind another along the first dimension, put one behind
    another along `gather_dim`.

    >>> _maybe_view_chunk_cat(torch.arange(4).view(4, 1), 2, 1)
    tensor([[0, 2],
            [1, 3]])
    """
    return res if gather_dim % max(res.ndim, 1) == 0 else \
        flambeau.cat(res.chunk(group_size), gather_dim)


def _chunk_or_narrow_cat(tensor: Tensor, num_chunks: int, narrow_dim: int, cat_dim: int = 0
                         ) -> Tensor:
    """The pieces of a tensor along `narrow_dim`, put one behind another along `cat_dim`.

    >>> _chunk_or_narrow_cat(torch.arange(4).view(2, 2), 2, 1)
    tensor([[0],
            [2],
            [1],
            [3]])
    """
    return tensor if narrow_dim == cat_dim else \
        flambeau.cat(tensor.chunk(num_chunks, narrow_dim), cat_dim)


# ---- the state of an object ---------------------------------------------------------------------

def _get_obj_state(obj: Any) -> Any:
    """What an object's pickle holds: what its `__getstate__` gives, or its attributes, or those
    and its slots. Of a tensor, what it has beyond its values and history.

    >>> _get_obj_state(logging.PlaceHolder(logging.root))
    {'loggerMap': {<RootLogger root (WARNING)>: None}}
    """
    state = obj.__getstate__()
    if not isinstance(obj, Tensor) or not isinstance(state, tuple):
        return state
    attributes, slots = state
    own = {name: value for name, value in slots.items() if name not in Tensor.__slots__}
    return (attributes, own) if own else attributes or {}


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Give an object the attributes that `_get_obj_state` has found on another; the object."""
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for name, value in _names.attributes_of(state).items():
        setattr(obj, name, value)
    return obj


# ---- tensors in one piece -----------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Tensors in one row.

    >>> _flatten_dense_tensors([torch.ones(1, 2), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    return flambeau.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a row, shaped like `tensors`.

    >>> _unflatten_dense_tensors(torch.ones(3), [torch.ones(1, 2), torch.ones(1)])
    (tensor([[1., 1.]]), tensor([1.]))
    """
    offset, views = 0, []
    for tensor in tensors:
        views.append(flat.narrow(0, offset, tensor.numel()).view(tensor.shape))
        offset += tensor.numel()
    return tuple(views)


def _flatten_sparse_tensors(tensors: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Indices and values of COO tensors, each in one row."""
    tensors = list(tensors)
    return (_flatten_dense_tensors([t._indices() for t in tensors]),
            _flatten_dense_tensors([t._values() for t in tensors]))


def _unflatten_sparse_tensors(flat: tuple[Tensor, Tensor], tensors: Iterable[Tensor]
                              ) -> tuple[Tensor, ...]:
    """The COO tensors that `_flatten_sparse_tensors` made two rows of."""
    tensors = list(tensors)
    indices = _unflatten_dense_tensors(flat[0], [t._indices() for t in tensors])
    values = _unflatten_dense_tensors(flat[1], [t._values() for t in tensors])
    return tuple([flambeau.sparse_coo_tensor(i, v, t.size())
                  for t, i, v in zip(tensors, indices, values)])


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Tensors in groups of one type, each of about this many bytes."""
    groups: dict[str, tuple[list[Tensor], int]] = defaultdict(lambda: ([], 0))
    for tensor in tensors:
        parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
        size = sum(p.numel() * p.element_size() for p in parts)
        group, taken = groups[tensor.type()]
        if taken + size > size_limit and taken:
            yield group
            group, taken = [], 0
        groups[tensor.type()] = group + [tensor], taken + size
    for group, _ in groups.values():
        if group:
            yield group


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]
                        ) -> tuple[Tensor, ...]:
    """Tensors in the order of their types in `ordered_tensors`."""
    of_type: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        of_type[tensor.type()].append(tensor)
    iterators = {kind: iter(group) for kind, group in of_type.items()}
    return tuple([next(iterators[t.type()]) for t in ordered_tensors])


def _handle_complex(tensor: Tensor) -> Tensor:
    """A complex tensor as a real one with real and imaginary parts in a last dimension."""
    complex_ = not isinstance(tensor, flambeau.nn.UninitializedParameter) and tensor.is_complex()
    return flambeau.view_as_real(tensor) if complex_ else tensor


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """`Tensor.type`, as a function."""
    return self.type(dtype, _get_async_or_non_blocking("type", non_blocking, kwargs))


def _to(self: Any, device: Any, non_blocking: bool = False) -> Any:
    """A storage or tensor on a device."""
    return self if self.device == Device(device) else self.to(device, non_blocking)


# ---- devices ------------------------------------------------------------------------------------


def _get_available_device_type() -> str | None:
    """The kind of accelerator there is."""
    return "cuda" if flambeau.cuda.is_available() else None


def _get_device_attr(get_member: Callable[[Any], Any]) -> Any:
    """What a function gives for the module of the accelerator there is."""
    kind = _get_available_device_type()
    return None if kind is None else get_member(getattr(flambeau, kind))


def _get_current_device_index() -> Any:
    """The number of the current accelerator."""
    return _get_device_attr(lambda module: module.current_device())


def _get_all_device_indices() -> Any:
    """The numbers of all accelerators."""
    return _get_device_attr(lambda module: list(range(module.device_count())))


def _get_devices_properties(device_ids: Iterable[int]) -> list[Any]:
    """The properties of accelerators."""
    found: list[Any] = []
    for i in device_ids:
        found.append(_get_device_attr(lambda module: module.get_device_properties(i)))  # noqa: B023
    return found


def get_current_device_index() -> int:
    """The number of the current accelerator; -1 where there is none."""
    return flambeau.cuda.current_device() if flambeau.cuda.device_count() > 0 else -1


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
    """The number of a device, which is given as an object, as text or as a number; -1 of a CPU,
    where `allow_cpu`. With `optional`, a device without number is the current one."""
    if isinstance(device, str):
        device = Device(device)
    index = None
    if isinstance(device, Device):
        if device.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {device}")
            index = -1
        else:
            index = device.index
    elif isinstance(device, int):
        index = device
    if index is None:
        if not optional:
            raise ValueError("Expected a torch.device with a specified index or an integer, but "
                             f"got:{device}")
        index = _get_current_device_index()
    return index


def _get_device_module(device_type: str) -> Any:
    """The module of a kind of device: `torch.cpu`.

    >>> _get_device_module("cpu") is torch.cpu
    True
    """
    module = getattr(flambeau, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module "
                           f"registered as 'torch.{device_type}'.")
    return module


def cpu_count() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ---- exceptions ---------------------------------------------------------------------------------


class KeyErrorMessage(str):
    """A message that KeyError, which shows the repr of its argument, shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another process or thread, to be raised here with its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same type; of RuntimeError, if that takes other arguments."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


# ---- names and calls ----------------------------------------------------------------------------


def _import_dotted_name(name: str) -> Any:
    """What a dotted name says.

    >>> _import_dotted_name("math.pi")
    3.141592653589793
    """
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def try_import(module_name: str) -> Any:
    """A module; None if it is not there."""
    try:
        return importlib.import_module(module_name)
    except ImportError:
        return None


def render_call(fn: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> str:
    """A call as text, with tensors in short.

    >>> render_call(F.gelu, (torch.ones(2),), {"approximate": "none"})
    "torch.nn.functional.gelu(tensor([...], size=(2,)), approximate='none')"
    """
    name = flambeau.overrides.resolve_name(fn) or str(fn)
    shown = [_short(a) for a in args] + [f"{k}={_short(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(shown)})"


def _short(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    details = [f"size={tuple(value.shape)}"]
    if value.dtype not in (flambeau.get_default_dtype(), flambeau.int64, flambeau.bool):
        details.append(f"dtype={value.dtype}")
    if value.device.type != "cpu":
        details.insert(1, f"device='{value.device}'")
    return f"tensor({', '.join(['...' if value.device.type == 'meta' else '[...]', *details])})"


def _get_async_or_non_blocking(
        function_name: str, non_blocking: bool, kwargs: dict[str, Any]) -> Any:
    """`non_blocking`, or what is given under its old name `async`."""
    if not kwargs:
        return non_blocking
    if len(kwargs) != 1 or "async" not in kwargs:
        unknown = next(k for k in kwargs if k != "async")
        raise TypeError(f"{function_name}() got an unexpected keyword argument '{unknown}'")
    warnings.warn("'async' is deprecated; use 'non_blocking'", stacklevel=2)
    return kwargs["async"]


def is_compiling() -> bool:
    """Whether `torch.compile` or `torch.export` is looking; an old name of
    `torch.compiler.is_compiling`."""
    return flambeau.compiler.is_compiling()


class _ClassPropertyDescriptor:
    def __init__(self, fget: Any, fset: Any = None):
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """Make a function of the class a property that the class has, too."""
    if not isinstance(func, classmethod | staticmethod):
        func = classmethod(func)
    return _ClassPropertyDescriptor(func)


def _dummy_type(name: str) -> type:
    """A class that stands for one that this build does not have."""
    def refuse(cls: Any, *args: Any, **kwargs: Any) -> Any:
        word = cls.__name__ if isinstance(cls, type) else type(cls).__name__
        raise RuntimeError(f"Tried to instantiate dummy base class {word}")

    made = type(name, (), {"__init__": refuse, "__new__": refuse})
    made.__module__ = "torch._utils"
    return made


class CallbackRegistry:
    """Functions that are called together; an error of one is reported and stops no other."""

    def __init__(self, name: str):
        self.name = name
        self.callback_list: list[Callable[..., None]] = []

    def add_callback(self, cb: Callable[..., None]) -> None:
        """Call this function, too."""
        self.callback_list.append(cb)

    def fire_callbacks(self, *args: Any, **kwargs: Any) -> None:
        """Call the functions, in the order in which they came."""
        for callback in self.callback_list:
            try:
                callback(*args, **kwargs)
            except Exception:
                logging.getLogger(__name__).exception(
                    "Exception in callback for %s registered with gpu trace", self.name)
