"""Switches of PyTorch's dispatcher in Python. Ops are dispatched in Python here throughout."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["enable_python_dispatcher", "no_python_dispatcher"]


@contextlib.contextmanager
def enable_python_dispatcher() -> Iterator[None]:
    """Changes nothing: the dispatcher is in Python."""
    yield


@contextlib.contextmanager
def no_python_dispatcher() -> Iterator[None]:
    """Changes nothing: there is no other dispatcher."""
    yield
