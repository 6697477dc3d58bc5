"""What a fake implementation may ask for: sizes that depend on values."""
from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flambeau._support.scopes import within

_current: ContextVar[Any] = ContextVar("fake_impl_context", default=None)


class FakeImplCtx:
    """Gives a fake implementation names for sizes that only the values decide."""

    def __init__(self, _fake_mode: Any, _op: Any):
        self._fake_mode, self._op = _fake_mode, _op
        self._shape_env = getattr(_fake_mode, "shape_env", None)

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that is not known: a symbol, of at least `min`."""
        if self._shape_env is None or not self._shape_env.allow_dynamic_output_shape_ops:
            from flambeau._subclasses.fake_tensor import DynamicOutputShapeException
            raise DynamicOutputShapeException(self._op)
        return self._shape_env.allocate_size(min, max)

    create_unbacked_symint = new_dynamic_size


def run_fake(function: Callable[..., Any], op: Any, args: Any, kwargs: Any) -> Any:
    """Call a fake implementation, which may ask for its context."""
    return within(_current, FakeImplCtx(None, op), function, *args, **kwargs)


def get_ctx() -> FakeImplCtx | None:
    """The context of the fake implementation that runs; None if none does.

    >>> get_ctx() is None
    True
    """
    return _current.get()


__all__ = ["FakeImplCtx", "get_ctx"]
