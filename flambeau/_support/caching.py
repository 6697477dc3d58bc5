"""`functools.cache` that keeps the type of the function.

mypy forgets the parameters of what `functools.cache` gives, and takes classes for unhashable.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def cached(function: F) -> F:
    """`function`, which is called once for the same arguments.

    >>> @cached
    ... def parity(n: int) -> str:
    ...     return "odd" if n % 2 else "even"
    >>> parity(3)
    'odd'
    """
    found: Any = functools.cache(function)
    return found
