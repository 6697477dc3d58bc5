"""Functions of devices that are not there: what asks is answered, what needs a device raises, as in
PyTorch's builds for the CPU."""
from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any


def answer(name: str, value: Any, doc: str) -> Callable[..., Any]:
    """A function that gives `value` (or, of a type, a new one) whatever it is asked for."""
    def function(*args: Any, **kwargs: Any) -> Any:
        return value() if isinstance(value, type) else value
    return _named(function, name, doc)


def refusal(name: str, error: type[Exception], message: str) -> Callable[..., Any]:
    """A function that raises."""
    def function(*args: Any, **kwargs: Any) -> Any:
        raise error(message)
    return _named(function, name, f"{error.__name__}: there is no such device.")


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def module_of(device: str, needs_device: str, message: str, *, false: str = "", zero: str = "",
              nothing: str = "", empty_list: str = "", empty_dict: str = "",
              error: type[Exception] = AssertionError) -> dict[str, Any]:
    """The functions of a device's module, by what they do without the device."""
    found: dict[str, Any] = {}
    for names, value, doc in ((false, False, "False"), (zero, 0, "0"), (empty_list, list, "Empty"),
                              (empty_dict, OrderedDict, "Empty")):
        found |= {n: answer(n, value, f"{doc}: there is no {device} device.")
                  for n in names.split()}
    found |= {n: answer(n, None, "Has no effect without a device.") for n in nothing.split()}
    found |= {n: refusal(n, error, message.format(n)) for n in needs_device.split()}
    return found


class stream_context(contextlib.AbstractContextManager):
    """`with stream(s)`: for no stream, nothing."""

    def __init__(self, stream: Any):
        if stream is not None:
            raise RuntimeError("there is no device whose stream could be chosen")
        self.stream = stream

    def __exit__(self, *exception: Any) -> None:
        return None
