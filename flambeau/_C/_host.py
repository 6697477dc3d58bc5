"""What PyTorch's C++ keeps for a thread, and how it warns."""
from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any

_stash: ContextVar[dict[str, Any] | None] = ContextVar("stash", default=None)


def _stash_obj_in_tls(key: str, value: Any) -> None:
    """Keep an object for this thread, and for what its backward passes run."""
    _stash.set({**(_stash.get() or {}), key: value})


def _is_key_in_tls(key: str) -> bool:
    """Has this thread stashed an object under that name?"""
    return key in (_stash.get() or {})


def _get_obj_in_tls(key: str) -> Any:
    """The object that this thread has stashed."""
    if not _is_key_in_tls(key):
        raise RuntimeError(f"nothing has been stashed under {key!r}")
    return (_stash.get() or {})[key]


def _warn() -> None:
    """Warn as C++ does."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """Warn as C++ does of what is to go."""
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)
