"""Ops that take functions: `torch.ops.higher_order.cond` and its kind.

What one of them does is said by kernels: for autograd, for a transform, for a mode, for a subclass,
and at last for the device. A call asks for them in this order.

>>> import flambeau
>>> class Twice(HigherOrderOperator):
...     def __init__(self):
...         super().__init__("doc_twice")
...     def __call__(self, f, x):
...         return super().__call__(f, x)
>>> twice = Twice()
>>> twice.fallthrough(flambeau._C.DispatchKey.AutogradCPU)
>>> @twice.py_impl(flambeau._C.DispatchKey.CompositeExplicitAutograd)
... def _(f, x):
...     return f(f(x))
>>> twice(flambeau.neg, flambeau.ones(1))
tensor([1.])
"""
from __future__ import annotations

import abc
import types
from collections.abc import Callable
from typing import Any

from flambeau._library.operator import OperatorBase
from flambeau._support.scopes import within
from flambeau.core import modes
from flambeau.core.calling import overrides
from flambeau.core.tensor import Tensor
from flambeau.dispatch.aten.keys import DispatchKey, below_autograd, parse_key
from flambeau.utils import _pytree

_higher_order_ops: dict[str, HigherOrderOperator] = {}
K = DispatchKey


class _HigherOrderNamespace(types.ModuleType):
    """`torch.ops.higher_order`."""

    __file__ = "torch.ops"

    def __init__(self) -> None:
        super().__init__("torch.ops.higher_order")

    def __getattr__(self, name: str) -> HigherOrderOperator:
        if name not in _higher_order_ops and not name.startswith("__"):
            import flambeau._higher_order_ops  # noqa: F401 - defines them
        found = _higher_order_ops.get(name)
        if found is None:
            raise AttributeError(f"'_HigherOrderNamespace' 'torch.ops.higher_order' object has no "
                                 f"attribute '{name}'")
        setattr(self, name, found)
        return found


higher_order = _HigherOrderNamespace()


class HigherOrderOperator(OperatorBase, abc.ABC):
    """An op that takes functions. Subclasses say in `__call__` what its arguments are."""

    def __init__(self, name: str, *, cacheable: bool = False,
                 supports_training_input_mutation: bool = False):
        super().__init__()
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please "
                               "subclass it.")
        self._name = self.__name__ = name
        self._ns, self.__module__ = "higher_order", "torch.ops.higher_order"
        self._cacheable = cacheable
        self._supports_training_input_mutation = supports_training_input_mutation
        self._fallthrough: set[Any] = set()
        _higher_order_ops[name] = self

    @property
    def namespace(self) -> str:
        """`higher_order`."""
        return self._ns

    def cacheable(self) -> bool:
        """Could what is compiled of it be kept?"""
        return self._cacheable

    def name(self) -> str:
        """The name of the op."""
        return self._name

    def __str__(self) -> str:
        return self._name

    def fallthrough(self, dispatch_key: Any) -> None:
        """Say that the op does nothing of its own for a key."""
        self._fallthrough.add(parse_key(dispatch_key))

    def py_autograd_impl(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Register the kernel for autograd; below it, `fn` may call the op again."""
        def above(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)
        self.py_impl(K.Autograd)(above)
        return fn

    def gen_schema(self, *args: Any, **kwargs: Any) -> Any:
        """The schema for a call with these arguments."""
        raise NotImplementedError(f"HigherOrderOperator.gen_schema is not implemented for "
                                  f"{self._name}")

    # ---- calls ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        flat = [v for v in _pytree.tree_leaves((args, kwargs)) if not callable(v)
                or isinstance(v, Tensor) or hasattr(type(v), "__torch_function__")]
        if overrides.has_torch_function(flat):
            return overrides.handle_torch_function(self, flat, *args, **kwargs)
        tensors = [v for v in flat if isinstance(v, Tensor)]
        stack: Any = modes.levels.get()
        if stack and not stack[-1].makes:
            return self._transformed(stack, args, kwargs)
        if not below_autograd.get():
            kernel = self.py_kernels.get(K.AutogradCPU) or self.py_kernels.get(K.Autograd)
            if kernel is not None:
                return kernel(*args, **kwargs)
            if tensors and not {K.AutogradCPU, K.Autograd} & self._fallthrough \
                    and K.CompositeImplicitAutograd not in self.py_kernels:
                raise self._missing(K.AutogradCPU)
        if stack:
            return self._shown_to_mode(stack, args, kwargs)
        for tensor in tensors:
            if type(tensor) in self.python_key_table:
                return self.python_key_table[type(tensor)](*args, **kwargs)
        backend = K.Meta if any(t.is_meta for t in tensors) else K.CPU
        return self.dispatch(backend, *args, **kwargs)

    def dispatch(self, dispatch_key: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel for a key of a device."""
        for key in (parse_key(dispatch_key), K.CompositeExplicitAutograd,
                    K.CompositeImplicitAutograd):
            if key in self.py_kernels:
                return self.py_kernels[key](*args, **kwargs)
        raise self._missing(dispatch_key)

    def _missing(self, key: Any) -> NotImplementedError:
        return NotImplementedError(f"could not find kernel for HigherOrderOperator {self._name} "
                                   f"at dispatch key {key} (resolved from {key})")

    def _transformed(self, stack: Any, args: Any, kwargs: Any) -> Any:
        """The call under a transform: by the rule for it, or else through the body."""
        from flambeau._C._functorch import interpreter_of
        level = stack[-1]
        interpreter = interpreter_of(level)
        rule = self.functorch_table.get(interpreter.key()) if interpreter is not None else None
        if rule is not None:
            return within(modes.levels, stack[:-1], rule, interpreter, *args, **kwargs)
        return self.dispatch(K.CPU, *args, **kwargs)

    def _shown_to_mode(self, stack: Any, args: Any, kwargs: Any) -> Any:
        mode = getattr(stack[-1], "mode", None)
        rule = next((self.python_key_table[c] for c in type(mode).__mro__
                     if c in self.python_key_table), None)
        if rule is not None:
            return within(modes.levels, stack[:-1], rule, mode, *args, **kwargs)
        if mode is None or getattr(type(mode), "supports_higher_order_operators", False):
            return within(modes.levels, stack[:-1], stack[-1].answer, self, (), args, kwargs)
        raise NotImplementedError(
            f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}. "
            f"Hint: set {mode}'s supports_higher_order_operators to True. This causes all higher "
            f"order operators to pass through {mode}'s __torch_dispatch__, so handle them "
            f"accordingly by adding support for HigherOrderOperators (in this case, {self._name}) "
            f"in {mode}.__torch_dispatch__ or returning NotImplemented when not supported.")


HigherOrderOperator.__module__ = "torch._ops"
__all__ = ["HigherOrderOperator", "higher_order"]
