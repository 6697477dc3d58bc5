"""Functions of devices that are not there: what asks is answered, what needs a device raises, as in
PyTorch's builds for the CPU."""
from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any


def answer(heading: str, value: Any, doc: str) -> Callable[..., Any]:
    """A function that gives `value` (or, of a type, a new one) whatever it is asked for."""
    return _function(heading, value if isinstance(value, type) else lambda: value, doc)


def refusal(heading: str, error: type[Exception], message: str) -> Callable[..., Any]:
    """A function that raises."""
    def refuse() -> Any:
        raise error(message)
    return _function(heading, refuse, f"{error.__name__}: there is no such device.")


def unavailable(heading: str, error: type[Exception], message: str, doc: str, *,
                module: str) -> type:
    """A class that can be named, and of which nothing can be made."""
    name = heading.partition("(")[0]
    made = refusal(f"{name}(cls,{heading.partition('(')[2] or '*args,**kwargs)'}", error, message)
    made.__qualname__ = f"{name}.__new__"
    return type(name, (), {"__new__": made, "__doc__": doc, "__module__": module})


def settle(namespace: dict[str, Any]) -> None:
    """Let the functions made here say that they stand in the module with this namespace."""
    for value in namespace.values():
        if isinstance(value, FunctionType) and value.__module__ is None:
            value.__module__ = namespace["__name__"]


def _function(heading: str, body: Callable[[], Any], doc: str) -> Callable[..., Any]:
    """The function of the heading, as "get_rng_state(device='cuda')"; without parentheses it has
    no parameters."""
    name, _, parameters = heading.removesuffix(")").partition("(")
    function = eval(f"lambda {parameters}: body()", {"body": body, "__name__": None})
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def module_of(device: str, needs_device: str, message: str, *, false: str = "", zero: str = "",
              nothing: str = "", empty_list: str = "", empty_dict: str = "",
              error: type[Exception] = AssertionError) -> dict[str, Any]:
    """The functions of a device's module, whose headings stand by what they do without it."""
    found: dict[str, Any] = {}
    for names, value, doc in ((false, False, "False"), (zero, 0, "0"), (empty_list, list, "Empty"),
                              (empty_dict, OrderedDict, "Empty")):
        found |= answers(names, value, f"{doc}: there is no {device} device.")
    found |= answers(nothing, None, "Has no effect without a device.")
    return found | refusals(needs_device, error, message)


def answers(headings: str, value: Any, doc: str) -> dict[str, Any]:
    """Functions that give `value`, by their names."""
    return {h.partition("(")[0]: answer(h, value, doc) for h in headings.split()}


def refusals(headings: str, error: type[Exception], message: str) -> dict[str, Any]:
    """Functions that raise, by their names."""
    return {h.partition("(")[0]: refusal(h, error, message) for h in headings.split()}


class stream_context(contextlib.AbstractContextManager):
    """`with stream(s)`: for no stream, nothing."""

    def __init__(self, stream: Any):
        if stream is not None:
            raise RuntimeError("there is no device whose stream could be chosen")
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None
