"""Choosing how attention is computed, and masks with a structure."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import Any

from flambeau.core.autograd.grad_mode import ContextDecorator

from . import bias

__all__ = ["SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
           "list_flash_attention_impls", "register_flash_attention_impl",
           "restore_flash_attention_impl", "sdpa_kernel"]


class SDPBackend(Enum):
    """The ways to compute scaled dot product attention. flambeau has one, which serves for all."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self):
        return self.value

    __index__ = __int__


_enabled: ContextVar[tuple[SDPBackend, ...]] = ContextVar(
    "_enabled", default=tuple(backend for backend in SDPBackend if backend.value >= 0))


def is_enabled(backend: SDPBackend) -> bool:
    """May attention be computed in this way?"""
    return backend in _enabled.get()


def enable(backend: SDPBackend, enabled: bool) -> None:
    """Allow a way to compute attention, or don't."""
    others = tuple(b for b in _enabled.get() if b is not backend)
    _enabled.set((*others, backend) if enabled else others)


def _cur_sdpa_kernel_backends(with_priority: bool = False):
    return list(_enabled.get())


class _Choice(ContextDecorator):
    """A choice of backends."""

    def __init__(self, backends):
        self.backends, self._changes = backends, ((_enabled, backends),)

    def clone(self):
        return type(self)(self.backends)


def sdpa_kernel(backends, set_priority: bool = False):
    """Allow only some backends within.

    Example:
        >>> from flambeau.nn.attention import SDPBackend, sdpa_kernel
        >>> q = flambeau.ones(1, 2, 4)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     nn.functional.scaled_dot_product_attention(q, q, q).shape
        torch.Size([1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}")
    backends = [backends] if isinstance(backends, SDPBackend) else backends
    return _Choice(tuple(dict.fromkeys(backends)))


# ---- implementations of flash attention that others bring ----------------------------------------

_FLASH_ATTENTION_IMPLS: dict[str, Callable[..., Any]] = {}
_active: list[tuple[str, Any]] = []         # the name and the handle of the one that is installed


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Keep a function that installs an implementation when it is activated, and gives a handle
    whose `remove` takes it away again."""
    _FLASH_ATTENTION_IMPLS[impl] = register_fn


def list_flash_attention_impls() -> list[str]:
    """The names of the implementations that can be activated."""
    return sorted({"FA3", "FA4", *_FLASH_ATTENTION_IMPLS})


def activate_flash_attention_impl(impl: str) -> None:
    """Install an implementation: one that was registered, or those of the package `flash_attn`,
    which need a GPU and are not there."""
    if impl not in list_flash_attention_impls():
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: "
                         f"{list_flash_attention_impls()}")
    if impl not in _FLASH_ATTENTION_IMPLS:
        raise ModuleNotFoundError("No module named 'flash_attn'", name="flash_attn")
    handle = _FLASH_ATTENTION_IMPLS[impl]()
    if handle is not None:
        _active[:] = [(impl, handle)]


def current_flash_attention_impl() -> str | None:
    """The implementation that was activated."""
    return _active[0][0] if _active else None


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Go back to the implementation that was there at first."""
    if _active:
        _active.pop()[1].remove()
    elif _raise_warn:
        logging.getLogger(__name__).warning(
            "Trying to restore default FA2 impl when no custom impl was activated")
