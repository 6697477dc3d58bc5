"""Choosing how attention is computed, and masks with a structure."""

from __future__ import annotations

from contextvars import ContextVar
from enum import Enum

from flambeau.autograd.grad_mode import ContextDecorator

from . import bias

__all__ = ["SDPBackend", "bias", "sdpa_kernel"]


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
    "_enabled", default=tuple(backend for backend in SDPBackend if backend.value >= 0)
)


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
            f"got {type(backends).__name__}"
        )
    backends = [backends] if isinstance(backends, SDPBackend) else backends
    return _Choice(tuple(dict.fromkeys(backends)))
