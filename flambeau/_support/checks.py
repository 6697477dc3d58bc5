"""`torch._check` and its kind: conditions that programs state, each with its type of error.

>>> import flambeau
>>> flambeau._check(1 + 1 == 2, lambda: "arithmetic is off")
>>> flambeau._check_value(False, lambda: "x must be positive")
Traceback (most recent call last):
ValueError: x must be positive
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor

Message = Callable[[], str]


def _check_with(error_type: type[Exception], cond: Any, message: Message | None = None) -> None:
    """Raise `error_type` with the text that `message()` gives unless `cond` is True."""
    if isinstance(cond, Tensor):
        raise TypeError("cond must be a bool, but got a Tensor. For tensor conditions, use "
                        "torch._check_tensor_all() to assert that all elements are true.")
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Message | None = None) -> None:
    """RuntimeError unless `cond` is True."""
    _check_with(RuntimeError, cond, message)


def _check_value(cond: Any, message: Message | None = None) -> None:
    """ValueError unless `cond` is True."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Message | None = None) -> None:
    """TypeError unless `cond` is True."""
    _check_with(TypeError, cond, message)


def _check_index(cond: Any, message: Message | None = None) -> None:
    """IndexError unless `cond` is True."""
    _check_with(IndexError, cond, message)


def _check_not_implemented(cond: Any, message: Message | None = None) -> None:
    """NotImplementedError unless `cond` is True."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Message | None = None, *, max: int | None = None) -> None:
    """RuntimeError unless `i` can be an extent: 0 … `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any,
                           message: Message | None = None) -> None:
    """Raise `error_type` unless all elements of the bool tensor `cond` are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.kind != "b":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Message | None = None) -> None:
    """RuntimeError unless all elements of the bool tensor `cond` are True."""
    _check_tensor_all_with(RuntimeError, cond, message)
