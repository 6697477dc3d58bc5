"""Which functions keep their form from one version to the next."""
from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that says in the documentation whether a function keeps its form.

    >>> @compatibility(is_backward_compatible=True)
    ... def f():
    ...     "Does something."
    >>> print(f.__doc__.strip().splitlines()[-1].strip())
    Backwards-compatibility for this API is guaranteed.
    """
    note = ("Backwards-compatibility for this API is guaranteed." if is_backward_compatible else
            "This API is experimental and is *NOT* backward-compatible.")
    kind = ".. note::" if is_backward_compatible else ".. warning::"

    def mark(fn: Any) -> Any:
        doc = textwrap.dedent(getattr(fn, "__doc__", None) or "")
        fn.__doc__ = f"{doc}\n\n{kind}\n    {note}\n"
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        return fn
    return mark


__all__ = ["compatibility"]
