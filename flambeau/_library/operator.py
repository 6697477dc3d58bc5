"""What all ops of `torch.ops` have in common: kernels that programs register, by key."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.dispatch.aten.keys import parse_key


class OperatorBase:
    """An op that can be given kernels: for a `DispatchKey`, a mode, a subclass or a transform."""

    def __init__(self) -> None:
        self._dispatch_cache: dict[Any, Any] = {}
        self.py_kernels: dict[Any, Callable[..., Any]] = {}
        self.python_key_table: dict[Any, Callable[..., Any]] = {}
        self.functorch_table: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def name(self) -> str:
        """The name of the op."""
        raise NotImplementedError

    def has_kernel_for_dispatch_key(self, k: Any) -> bool:
        """Is there a kernel for this key?"""
        key = parse_key(k)
        return key in self.py_kernels or self._has_own_kernel(key.name)

    def has_kernel_for_any_dispatch_key(self, ks: Any) -> bool:
        """Is there a kernel for one of these keys?"""
        return any(self.has_kernel_for_dispatch_key(k) for k in ks)

    def _has_own_kernel(self, key: str) -> bool:
        return False

    def py_impl(self, k: Any) -> Callable[[Any], Any]:
        """A decorator that registers a kernel: for a key, for the class of a mode (it is called
        with the mode first) or of a tensor, or for a transform (with its interpreter first)."""
        table = self.python_key_table if isinstance(k, type) else self.functorch_table \
            if type(k).__name__ == "TransformType" else self.py_kernels
        key = parse_key(k) if table is self.py_kernels else k

        def register(fn: Callable[..., Any]) -> Callable[..., Any]:
            if key in table:
                raise RuntimeError(f"Trying to override a python impl for {k} on operator "
                                   f"{self.name()}")
            table[key] = fn
            self._dispatch_cache.clear()
            return fn
        return register

    def py_functionalize_impl(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Register what the op does while writes are replaced by new values."""
        self.py_kernels[parse_key("Functionalize")] = fn
        return fn


OperatorBase.__module__ = "torch._ops"
__all__ = ["OperatorBase"]
