"""`fork` and `wait`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.futures import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of a call, which is done at once."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The value of a future."""
    return future.wait()


__all__ = ["fork", "wait"]
