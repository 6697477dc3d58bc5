"""Functions that are recorded when a proxy is among their arguments, put in place for a while."""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.fx.proxy import Proxy


def _find_proxy(*values: Any) -> Proxy | None:
    for value in values:
        if isinstance(value, Proxy):
            return value
        inner = value.values() if isinstance(value, dict) else value if isinstance(
            value, (tuple, list)) else (value.start, value.stop, value.step) if isinstance(
            value, slice) else ()
        found = _find_proxy(*inner)
        if found is not None:
            return found
    return None


def _recording(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which is recorded if a proxy is among its arguments."""
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made
    vars(wrapper)["__fx_already_patched"] = True
    return wrapper


@contextlib.contextmanager
def _patched(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set items of dicts and attributes of objects, until the block ends."""
    missing, before = object(), []
    for place, name, value in changes:
        if isinstance(place, dict):
            before.append((place, name, place.get(name, missing)))
            place[name] = value
        else:
            before.append((place, name, getattr(place, name)))
            setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in reversed(before):
            if not isinstance(place, dict):
                setattr(place, name, value)
            elif value is missing:
                del place[name]
            else:
                place[name] = value
