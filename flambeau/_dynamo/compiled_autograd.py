"""Compiling the backward pass: there is no compiler, it runs as it stands."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

compiled_autograd_enabled = False
in_compiled_autograd_region = False


@contextlib.contextmanager
def _enable(compiler_fn: Callable[..., Any], dynamic: bool = True,
            ignore_active_disable_ctx: bool = True) -> Iterator[None]:
    """Inside, backward passes run as they stand."""
    yield


@contextlib.contextmanager
def _disable() -> Iterator[None]:
    """Inside, backward passes run as they stand."""
    yield


def reset() -> None:
    """There is nothing to forget."""


__all__ = ["_disable", "_enable", "reset"]
