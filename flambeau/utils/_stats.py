"""How many times functions were called that are decorated with `count`."""
from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

simple_call_counter: OrderedDict[str, int] = OrderedDict()


def count_label(label: str) -> None:
    """Count one more call under a name."""
    simple_call_counter[label] = simple_call_counter.get(label, 0) + 1


def count(fn: _F) -> _F:
    """A decorator: count the calls of a function."""
    @functools.wraps(fn)
    def counted(*args: Any, **kwargs: Any) -> Any:
        count_label(fn.__qualname__)
        return fn(*args, **kwargs)
    return counted                                                  # type: ignore[return-value]
