"""`Variable`: the name that tensors which require grad once had."""
from __future__ import annotations

import sys
import warnings
from types import ModuleType
from typing import Any

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.schema.errors import type_name


class _VariableMeta(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=_VariableMeta):
    """`Variable(tensor, requires_grad=False)` gives a tensor on the same memory."""

    _execution_engine: Any

    def __new__(cls, data: Any = (), requires_grad: bool = False, volatile: Any = None,
                **wrong: Any) -> Any:
        if wrong:
            raise TypeError(f"'{next(iter(wrong))}' is an invalid keyword argument for this "
                            "function")
        if type(data) is tuple and not data:
            data = flambeau.tensor(())
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type_name(data)}")
        if volatile:
            warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` "
                          "instead.", UserWarning, stacklevel=2)
        result = data.detach()
        if requires_grad:
            if not (result.is_floating_point() or result.is_complex()):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require "
                                   "gradients")
            result.requires_grad_()
        return result


class _Engine:
    """The engine, as far as users of private names know it."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        from flambeau.autograd.differentiate import queue_callback
        queue_callback(callback)


Variable._execution_engine = _Engine()


class _Module(ModuleType):
    """`torch.autograd.variable` is the name of this module and that of a function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) "
                           "instead")


sys.modules[__name__].__class__ = _Module

__all__ = ["Variable"]
