"""`fork` and `wait`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._support.c_functions import matched
from flambeau.futures import Future


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of a call, which is done at once."""
    if not callable(func):
        raise TypeError(f"Object of type '{type(func).__name__}' is not an instance of 'function'")
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


@matched("(arg0: torch._C.Future) -> object", isinstance_of={"torch._C.Future": Future})
def wait(future: Future) -> Any:
    """The value of a future."""
    return future.wait()


__all__ = ["fork", "wait"]
