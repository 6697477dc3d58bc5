"""Default devices for a while: `with torch.device("meta")`, as a mode and as a decorator."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from flambeau.core.autograd.grad_mode import decorate
from flambeau.core.devices import device as make_device
from flambeau.transforms.function_modes import TorchFunctionMode

_F = TypeVar("_F", bound=Callable[..., Any])

CURRENT_DEVICE = None


class DeviceContext(TorchFunctionMode):
    """While entered, new tensors are on the device.

    >>> with DeviceContext(flambeau.device("meta")):
    ...     flambeau.ones(2).device
    device(type='meta')
    """

    def __init__(self, device: Any):
        super().__init__()
        self.device = make_device(device)

    def __enter__(self) -> DeviceContext:
        self.device.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.device.__exit__(*exception)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with self.device:
            return func(*args, **(kwargs or {}))


def device_decorator(device: Any, func: _F) -> _F:
    """A function during which new tensors are on the device."""
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; it is ambiguous whether or not only the "
                           "constructor or all methods should have the context manager applied; "
                           "additionally, decorating a class at definition-site will prevent use "
                           "of the identifier as a conventional type.  To specify which methods to "
                           "decorate, decorate each of them individually.")

    return decorate(func, lambda: make_device(device))              # type: ignore[return-value]


def set_device(device: Any) -> Callable[[_F], _F]:
    """A decorator: new tensors of the function are on the device."""
    return lambda func: device_decorator(make_device(device), func)


__all__ = ["CURRENT_DEVICE", "DeviceContext", "device_decorator", "set_device"]
