"""Context managers that decorate functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.autograd.grad_mode import BareContextDecorator, ContextDecorator, decorate

__all__ = ["context_decorator"]

_DecoratorContextManager = ContextDecorator
_NoParamDecoratorContextManager = BareContextDecorator


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Let `func` run inside a context: `ctx` is a context manager, entered again at each call, or
    a function that makes one.

    >>> import contextlib
    >>> context_decorator(contextlib.nullcontext(), len)([1, 2])
    2
    """
    is_context = hasattr(ctx, "__enter__")
    if is_context and callable(ctx):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), "
            "making it ambiguous which interface to use.  If you intended to pass a context "
            "manager factory, rewrite your call as context_decorator(lambda: ctx()); if you "
            "intended to pass a context manager directly, rewrite your call as "
            "context_decorator(lambda: ctx)")
    return decorate(func, (lambda: ctx) if is_context else ctx)
