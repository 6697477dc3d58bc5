"""Questions and settings that PyTorch answers in C++, by the public functions that stand for them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Size, backends, overrides
from flambeau._support import settings as _settings
from flambeau.autograd.forward_ad import (
    _is_fwd_grad_enabled,  # noqa: F401
)
from flambeau.autograd.forward_ad import (
    set_fwd_grad_enabled as _set_fwd_grad_enabled,  # noqa: F401
)
from flambeau.core import copy_on_write
from flambeau.core.devices import device
from flambeau.core.dtypes import dtype  # noqa: F401
from flambeau.core.shapes import broadcast_shapes
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import layout, memory_format, qscheme, strided  # noqa: F401
from flambeau.kernels.linalg.lapack import LinAlgError as _LinAlgError  # noqa: F401
from flambeau.random import Generator, default_generator  # noqa: F401
from flambeau.storage import StorageBase  # noqa: F401

_get_deterministic_algorithms = _settings.are_deterministic_algorithms_enabled
_get_deterministic_algorithms_warn_only = _settings.is_deterministic_algorithms_warn_only_enabled
_set_deterministic_algorithms = _settings.use_deterministic_algorithms
_get_float32_matmul_precision = _settings.get_float32_matmul_precision
_set_float32_matmul_precision = _settings.set_float32_matmul_precision
_get_warnAlways, _set_warnAlways = _settings.is_warn_always_enabled, _settings.set_warn_always
_get_function_stack_at = overrides._get_function_stack_at
_is_torch_function_mode_enabled = overrides._is_torch_function_mode_enabled
_len_torch_function_stack = overrides._len_torch_function_stack
_pop_torch_function_stack = overrides._pop_mode
_push_on_torch_function_stack = overrides._push_mode
_has_torch_function = overrides.has_torch_function
_has_torch_function_unary = overrides.has_torch_function_unary
_has_torch_function_variadic = overrides.has_torch_function_variadic


class _BaseOfTensor(type):
    """What tensors are instances of, with their attributes, and nothing else is made of."""

    def __getattribute__(cls, name: str) -> Any:
        found = type.__getattribute__ if name in _OF_TYPES else getattr
        return found(cls if name in _OF_TYPES else Tensor, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, Tensor)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Cannot directly construct TensorBase; subclass it and then construct "
                           "that")


_OF_TYPES = frozenset("""__name__ __qualname__ __module__ __class__ __mro__ mro __dict__ __bases__
    __instancecheck__ __subclasscheck__ __init_subclass__ __call__ __mro_entries__""".split())


class TensorBase(metaclass=_BaseOfTensor):
    """The type that `Tensor` extends in PyTorch: here it has its attributes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise RuntimeError("Cannot subclass _TensorBase directly")


_TensorBase = TensorBase
TensorBase.__module__ = "torch._C"


class _ClassOfFunctions(type):
    def __getattr__(cls, name: str) -> Any:
        if callable(found := getattr(flambeau, name, None)):
            return found
        raise AttributeError(f"type object '_VariableFunctionsClass' has no attribute {name!r}")


class _VariableFunctionsClass(metaclass=_ClassOfFunctions):
    """Has the functions of `torch` as attributes: PyTorch's pickles name them so."""


# ---- tensors -------------------------------------------------------------------------------------


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Do two tensors look at the same storage?"""
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def _overlaps(a: Tensor, b: Tensor) -> bool:
    """May two tensors share memory?"""
    return _is_alias_of(a, b)


def _storage_id(tensor: Tensor) -> int:
    """What identifies the storage of a tensor."""
    return tensor.untyped_storage()._cdata


_storage_address = _storage_id


def _data_address(tensor: Tensor) -> int:
    """Where the storage of a tensor begins."""
    return tensor.untyped_storage().data_ptr()


def _is_cow_tensor(tensor: Tensor) -> bool:
    """Does a storage hold this tensor that is copied when it is written to?"""
    return copy_on_write.is_shared(tensor._array)


def _storage_Use_Count(cdata: int) -> int:
    """How many look at the storage that `storage._cdata` identifies: its tensors, and the storage
    object."""
    import ctypes

    from flambeau.storage import _storages
    references = ctypes.c_ssize_t.from_address(cdata).value
    return references - 2 * (_storages.get(cdata) is not None) + 1


def _has_storage(tensor: Tensor) -> bool:
    """Does a tensor look at a storage?"""
    return tensor.layout is strided


def _any_requires_grad(*args: Any, **kwargs: Any) -> bool:
    """Does one of these tensors, or of the tensors in a list among them, require grad?"""
    groups = [arg if isinstance(arg, list) else [arg] for arg in (*args, *kwargs.values())]
    return any(t.requires_grad for group in groups if all(isinstance(t, Tensor) for t in group)
               for t in group)


def _non_sym_sizes(tensor: Tensor) -> tuple[int, ...]:
    """The sizes."""
    return tuple(tensor.shape)


def _infer_size(a: Any, b: Any) -> Size:
    """The shape to which two shapes broadcast."""
    for place, shape in enumerate((a, b), 1):
        if not isinstance(shape, Size):
            raise RuntimeError(f"expected a torch.Size as argument {place}")
    return Size(broadcast_shapes(a, b))


def _increment_version(tensors: Any) -> None:
    """Count one more write to each tensor."""
    from flambeau._support.source_locations import counter_of
    for tensor in (tensors,) if isinstance(tensors, Tensor) else tensors:
        counter_of(tensor)[0] += 1


# ---- backends ------------------------------------------------------------------------------------


def _switch(backend: str, switch: str) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def get() -> Any:
        return getattr(getattr(backends, backend), switch)

    def set_(value: Any) -> None:
        setattr(getattr(backends, backend), switch, value)
    return get, set_


_get_cudnn_enabled, _set_cudnn_enabled = _switch("cudnn", "enabled")
_get_cudnn_benchmark, _set_cudnn_benchmark = _switch("cudnn", "benchmark")
_get_cudnn_deterministic, _set_cudnn_deterministic = _switch("cudnn", "deterministic")
_get_cudnn_allow_tf32, _set_cudnn_allow_tf32 = _switch("cudnn", "allow_tf32")
_get_mkldnn_enabled, _set_mkldnn_enabled = _switch("mkldnn", "enabled")
_get_qengine, _set_qengine = _switch("quantized", "engine")


def _get_cpu_capability() -> str:
    """The vector instructions that the kernels may use."""
    return backends.cpu.get_cpu_capability()


def _get_privateuse1_backend_name() -> str:
    """The name of the device that others bring."""
    return "privateuseone"


def _get_default_device() -> str:
    """Where new tensors are."""
    from flambeau.core.devices import get_default_device
    return str(get_default_device())


def _get_accelerator(check: bool | None = None) -> Any:
    """The device that computes: the CPU."""
    return device("cpu")


def _show_config() -> str:
    """How the package was built."""
    from flambeau import __config__
    return __config__.show()


def _autocast_supported_devices() -> list[str]:
    """The types of devices that autocast knows."""
    return ["cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "privateuseone", "mps"]


def _is_any_autocast_enabled() -> bool:
    """Is autocast on, for any type of device?"""
    from flambeau.amp.autocast_mode import is_autocast_enabled
    return any(map(is_autocast_enabled, _autocast_supported_devices()))


# ---- this process --------------------------------------------------------------------------------


def _set_thread_name(name: str) -> None:
    """Name this thread, for the system's tools; at most 15 characters count."""
    path = "/proc/thread-self/comm"
    try:
        with open(path, "w") as file:
            file.write(name[:15])
    except OSError:
        import threading
        threading.current_thread().name = name


def _get_thread_name() -> str:
    """The name of this thread."""
    try:
        with open("/proc/thread-self/comm") as file:
            return file.read().rstrip("\n")
    except OSError:
        import threading
        return threading.current_thread().name


_vmap_warnings = False


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Remembered: `vmap` never falls back with a warning."""
    global _vmap_warnings
    _vmap_warnings = bool(enabled)


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """What `_debug_only_display_vmap_fallback_warnings` was told."""
    return _vmap_warnings


def _add_docstr(obj: Any, text: str) -> Any:
    """Document an object that has no documentation."""
    if getattr(obj, "__doc__", None):
        kind = "Type" if isinstance(obj, type) else "function"
        raise RuntimeError(f"{kind} {getattr(obj, '__name__', obj)!r} already has a docstring")
    obj.__doc__ = text
    return obj


def _set_tracing_state(state: Any) -> None:
    """None ends the tracing that runs; there is no other state to set."""
    from flambeau.jit import _trace
    if state is not None and state is not True:
        raise NotImplementedError("torch._C._set_tracing_state: flambeau has no graphs of "
                                  "TorchScript into which it could trace")
    _trace._tracing = int(bool(state))


# ---- ops -----------------------------------------------------------------------------------------


def _packet(name: str) -> Any:
    """The overloads of `aten::add`; None if there is no such op."""
    from flambeau import ops
    namespace, _, op = name.partition("::")
    return getattr(getattr(ops, namespace, None), op, None)


def _get_schema(name: str, overload: str) -> Any:
    """The schema of an overload of an op.

    >>> _get_schema("aten::add", "Tensor")
    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    """
    return _overload(name, overload)._schema


def _overload(name: str, overload: str) -> Any:
    packet = _packet(name)
    if packet is None or (overload or "default") not in packet.overloads():
        raise RuntimeError("Found no matching schema")
    return getattr(packet, overload or "default")


def _get_operation_overload(name: str, overload: str) -> Any:
    """What calls an overload, what calls it with dispatch keys, and its tags; None if there is no
    such op."""
    try:
        found = _overload(name, overload)
    except RuntimeError:
        return None
    return found, found, getattr(found, "tags", [])


def _jit_get_operation(name: str) -> tuple[Any, list[str] | None]:
    """What calls an op, and the names of its overloads; None twice if there is no such op."""
    packet = _packet(name)
    if packet is None:
        return None, None
    return packet, ["" if n == "default" else n for n in packet.overloads()]


def _jit_get_schemas_for_operator(name: str) -> list[Any]:
    """The schemas of an op's overloads."""
    packet = _packet(name)
    return [] if packet is None else [getattr(packet, n)._schema for n in packet.overloads()]
