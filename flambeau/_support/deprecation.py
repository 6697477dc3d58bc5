"""Names that PyTorch means to take away, and says so when they are used."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def deprecated(message: str, category: type[Warning] = FutureWarning) -> Callable[[_F], _F]:
    """A decorator: each call warns of the line that called. `__deprecated__` holds the message, as
    PEP 702 has it.

    >>> @deprecated("`old` is deprecated.")
    ... def old():
    ...     return 1
    >>> old.__deprecated__
    '`old` is deprecated.'
    """
    def decorate(function: Any) -> Any:
        function.__deprecated__ = message

        @functools.wraps(function)          # which hands the mark on
        def warned(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(message, category, stacklevel=2)
            return function(*args, **kwargs)
        return warned
    return decorate
