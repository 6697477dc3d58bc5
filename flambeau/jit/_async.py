"""`fork` and `wait`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau._support.c_functions import matched
from flambeau.futures import Future, _completed
from flambeau.jit._script import warn_deprecated

_ADVICE = "Please use `torch.compile` instead."


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """A future of a call, which is done at once."""
    warn_deprecated("fork", _ADVICE)
    if not callable(func):
        raise TypeError(f"Object of type '{type(func).__name__}' is not an instance of 'function'")
    return _completed(func(*args, **kwargs))


@matched("(arg0: torch._C.Future) -> object", {"torch._C.Future": Future}, name="wait")
def _wait(future: Future) -> Any:
    return future.wait()


def wait(future: Future) -> Any:
    """The value of a future."""
    warn_deprecated("wait", _ADVICE)
    return _wait(future)


__all__ = ["fork", "wait"]
