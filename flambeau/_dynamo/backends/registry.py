"""Backends of `torch.compile`, by name."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.compiler import InvalidBackend, list_backends

_BACKENDS: dict[str, Callable[..., Any]] = {}


def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
    """Give a backend, a function of a graph and example inputs, a name; or a decorator."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    _BACKENDS[name or compiler_fn.__name__] = compiler_fn
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of that name, a function of a graph and example inputs.

    >>> import flambeau
    >>> lookup_backend("eager")(flambeau.neg, [])(flambeau.ones(1))
    tensor([-1.])
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _BACKENDS:
        return _BACKENDS[compiler_fn]
    if compiler_fn in ("eager", "aot_eager"):
        def run_as_it_is(gm: Any, fake_tensor_inputs: Any, **kwargs: Any) -> Any:
            """The graph as it is."""
            return gm
        return run_as_it_is
    if compiler_fn in list_backends(exclude_tags=()):
        from flambeau._dynamo._absent import COMPILER, absent_function
        return absent_function("torch._dynamo.backends", compiler_fn, COMPILER)
    raise InvalidBackend(f"Invalid backend: {compiler_fn!r}, see `torch._dynamo.list_backends()` "
                         "for available backends.")


__all__ = ["InvalidBackend", "list_backends", "lookup_backend", "register_backend"]
