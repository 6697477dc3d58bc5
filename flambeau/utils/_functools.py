"""Caching of methods."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def cache_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: a method keeps its results by its arguments, with the object, so that they go
    when it goes."""
    name = f"_cache_method_{f.__name__}"

    @functools.wraps(f)
    def cached(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise AssertionError("cache_method: keyword arguments are not supported")
        results = self.__dict__.setdefault(name, {})
        if args not in results:
            results[args] = f(self, *args)
        return results[args]
    return cached
