"""Devices: where a tensor's elements live.

Today that is `cpu`, or `meta`, which is nowhere: a tensor there has a shape and a type, and ops on
it give shapes and types. A device is only a name with a number; other names are known so that a
program can ask for them and be told, as PyTorch's CPU build tells it, that they are not there.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import frozen
from flambeau._support.own_methods import belong
from flambeau._support.scopes import Scope
from flambeau._support.torch_name import is_named_torch
from flambeau.core import late_bound
from flambeau.kernels import set_error_name

_TORCH_TYPES = (
    "cpu cuda ipu xpu mkldnn opengl opencl ideep hip ve fpga maia xla lazy vulkan mps meta hpu "
    "mtia privateuseone".split())
_parsed: dict[str, tuple[str, int | None]] = {}         # what strings say, once they were right


@set_error_name("torch.device")
@frozen
class device(Scope):
    """A device: `device("cpu")`, `device("cpu", 0)`, `device("cpu:0")`. Also a context manager
    that makes it the default for new tensors.

    >>> device("cpu:0").index
    0
    """

    __slots__ = ("index", "type")
    index: int | None
    type: str

    def __init__(self, *args: Any, **kwargs: Any):
        type: Any = args[0] if args else None
        index: Any = None
        if len(args) == 1 and not kwargs and isinstance(type, str) and type in _parsed:
            for what, value in zip(("type", "index"), _parsed[type]):
                object.__setattr__(self, what, value)
            return
        if kwargs or len(args) != 1 or not isinstance(type, str):
            type, *rest = late_bound.bound(
                ("device(Device device)", "device(str type, int? index=-1)"), args, kwargs)
            index = rest[0] if rest and rest[0] != -1 else None
            if args[1:] == (-1,) or kwargs.get("index") == -1:
                raise RuntimeError("Device index must not be negative")
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int):
            raise RuntimeError("Device index must not be negative" if type < 0 else "Cannot access "
                               "accelerator device when none is available.")
        if index is not None and index < 0:
            raise RuntimeError("Device index must not be negative")
        name, colon, number = type.partition(":")
        if not type:
            raise RuntimeError("Device string must not be empty")
        if not name.isascii() or not name.replace("_", "a").isalpha():
            raise RuntimeError(f"Invalid device string: '{type}'")
        if colon:
            if index is not None:
                raise RuntimeError("type (string) must not include an index because index was "
                                   f"passed explicitly: {type}")
            if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        if name not in _TORCH_TYPES:
            raise RuntimeError(f"Expected one of {', '.join(_TORCH_TYPES)} device type at "
                               f"start of device string: {name}")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)
        if len(args) == 1 and args[0] is type:
            _parsed[type] = name, index

    def __repr__(self) -> str:
        return (f"device(type='{self.type}')" if self.index is None
                else f"device(type='{self.type}', index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, device) and self.type == other.type
                and self.index == other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device if is_named_torch() else _device, (
            (self.type,) if self.index is None else (self.type, self.index))

    def _changes(self) -> Any:
        return (_default, _usual(self)),


def _device(type: str, index: int | None = None) -> device:
    return device(type, index)


device.__module__ = "torch"
cpu, meta = device("cpu"), device("meta")
_default: ContextVar[device] = ContextVar("default_device", default=cpu)


def _usual(where: Any) -> device:
    """A device that is to be the default. That it is not there shows when something is made."""
    found = where if isinstance(where, device) else device(where)
    return cpu if found.type == "cpu" else meta if found.type == "meta" else found


def checked(where: Any) -> device:
    """A `device=` argument as a device that this build has; None is the default device."""
    if where is None:
        where = _default.get()
    if where is cpu:
        return cpu
    if not isinstance(where, device):
        where = device(where)
    if where.type == "cpu":
        return cpu
    if where.type == "meta":
        return meta
    if where.type == "cuda":
        raise AssertionError("Torch not compiled with CUDA enabled\nflambeau runs on 'cpu' (and "
                             f"'meta'); '{where}' was asked for")
    if where.type == "xpu":
        raise AssertionError("Torch not compiled with XPU enabled\nflambeau runs on 'cpu' (and "
                             f"'meta'); '{where}' was asked for")
    from flambeau._support.devices.backends import could_not_run
    backend = where.type.capitalize() if len(where.type) > 4 else where.type.upper()
    raise could_not_run("empty.memory_format", backend, "CPU", "Meta")


def check_same(tensors: Sequence[Any]) -> None:
    """Raise unless all tensors are on the device of the first."""
    for tensor in tensors:
        wanted = tensors[0]._device
        if tensor._device is not wanted and tensor._device != wanted:
            raise RuntimeError(f"Tensor on device {tensor._device} is not on the expected device "
                               f"{wanted}!")


def cannot_pin() -> RuntimeError:
    """What is said where memory is to be locked for copies to an accelerator."""
    return RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned "
                        "memory allocator is available on this system.")


def set_default_device(device: Any) -> None:
    """Make `device` that of new tensors (None: the CPU)."""
    _default.set(cpu if device is None else _usual(device))


def get_default_device() -> device:
    """The device that new tensors are made on."""
    return _default.get()


belong(__name__.partition(".")[0], get_default_device, set_default_device)
