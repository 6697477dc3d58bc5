"""Functions that answer later."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def async_execution(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that returns a `Future`: who calls it through RPC gets the value of
    that, once it is there, and no thread waits meanwhile.

    Below `staticmethod` or `classmethod` in the list of decorators it is written last.
    """
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)
    wrapper._wrapped_async_rpc_function = fn        # type: ignore[attr-defined]
    return wrapper
