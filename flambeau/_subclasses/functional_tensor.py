"""Functional tensors: what is written to them becomes a new value, and views follow.

A `FunctionalTensor` has a value, `elem`, which is never written to. An op that writes gives it
another; of a view, the memory that it looks at gets a new value, and all views of it are computed
from that when they are next read.

>>> import flambeau
>>> x = flambeau.zeros(3)
>>> with FunctionalTensorMode():
...     y = FunctionalTensor.to_functional(x)
...     y[0].add_(5)
...     z = y * 2
FunctionalTensor(tensor(5.))
>>> x, z.from_functional()
(tensor([0., 0., 0.]), tensor([10.,  0.,  0.]))
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._ops import OpOverload
from flambeau._subclasses.functional_views import View
from flambeau._support.symbolic_names import Tag
from flambeau.core import modes
from flambeau.utils import _pytree as pytree
from flambeau.utils._python_dispatch import TorchDispatchMode, _ModeLevel, modes_set_aside


class _Memory:
    """What views of one memory share: its value, the writes that it has not seen yet, and how many
    there have been."""

    def __init__(self, value: Tensor):
        self.value, self.generation = value, 0
        self.pending: list[tuple[tuple[View, ...], Tensor]] = []

    def settled(self) -> Tensor:
        """The value, after all writes."""
        for views, value in self.pending:
            bases = [self.value]
            for view in views[:-1]:
                bases.append(view.of(bases[-1]))
            for view, base in zip(reversed(views), reversed(bases)):
                value = view.put_back(base, value)
            self.value = value
        self.pending = []
        return self.value


class FunctionalTensor(Tensor):
    """A tensor that is never written to: writes give it another value."""

    elem: Tensor
    _memory: _Memory
    _views: tuple[View, ...]            # the calls that lead from the memory to this view
    _generation: int
    _mutated: bool
    _mode: Any

    __torch_function__ = flambeau._C._disabled_torch_function_impl
    metadata_fns = ()

    @staticmethod
    def __new__(cls, elem: Tensor, mode: FunctionalTensorMode | None = None) -> FunctionalTensor:
        make: Any = Tensor._make_wrapper_subclass
        made = make(
            cls, elem.shape, elem.stride(), dtype=elem.dtype, device=elem.device,
            requires_grad=elem.requires_grad)
        made.elem, made._memory, made._views = elem, _Memory(elem), ()
        made._generation, made._mutated, made._mode = 0, False, mode
        return made

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return f"FunctionalTensor({self._current()!r})"

    def _current(self) -> Tensor:
        """The value, after all writes to the memory."""
        if self._generation != self._memory.generation:
            with disable_functional_mode():
                value = self._memory.settled()
                for view in self._views:
                    value = view.of(value)
            self.elem, self._generation = value, self._memory.generation
        return self.elem

    @staticmethod
    def to_functional(x: Tensor) -> FunctionalTensor:
        """A functional tensor with the value of another."""
        if isinstance(x, FunctionalTensor):
            raise AssertionError("x is a functional tensor already")
        with disable_functional_mode():
            return FunctionalTensor(x, _active())

    def from_functional(self) -> Tensor:
        """The value."""
        return self._current()

    def is_base_tensor(self) -> bool:
        """Is it no view of another functional tensor?"""
        return not self._views

    def replace_(self, output: Any) -> None:
        """Give it another value, and the memory that it looks at."""
        value = output._current() if isinstance(output, FunctionalTensor) else output
        self._memory.pending.append((self._views, value))
        self._memory.generation += 1
        self._mutated, self.elem = True, value
        self._current()

    def commit_update(self) -> None:
        """Writes are seen at once: nothing to do."""

    def sync(self) -> None:
        """Compute the value anew if the memory was written to."""
        self._current()

    def mark_mutation_hidden_from_autograd(self) -> None:
        """Say that a write was not one that derivatives see."""

    def tolist(self) -> Any:
        """The numbers."""
        return self._current().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        mode = next((t._mode for t in pytree.arg_tree_leaves(*args, **(kwargs or {}))
                     if isinstance(t, FunctionalTensor) and t._mode is not None), None)
        return (mode or FunctionalTensorMode()).dispatch(func, args, kwargs or {})


def _active() -> FunctionalTensorMode | None:
    return next((lv.mode for lv in reversed(modes.levels.get()) if isinstance(lv, _ModeLevel)
                 and isinstance(lv.mode, FunctionalTensorMode)), None)


class FunctionalTensorMode(TorchDispatchMode):
    """Inside, ops make functional tensors, and what writes becomes what does not."""

    def __init__(self, pre_dispatch: bool = False, export: bool = False,
                 _allow_token_discovery: bool = False):
        super().__init__()
        self.pre_dispatch, self.export, self.is_on_stack = pre_dispatch, export, False
        self._tokens: dict[Any, Any] = {}
        self._copies_views = False          # are views written down as copies?

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an op on the values of functional tensors."""
        looks = isinstance(func, OpOverload) and func.is_view and args \
            and isinstance(args[0], FunctionalTensor)

        def value(t: Any) -> Any:
            # what only looks waits with the writes until somebody reads
            return t if not isinstance(t, FunctionalTensor) else t.elem if looks else t._current()
        plain_args, plain_kwargs = pytree.tree_map_only(Tensor, value, (args, kwargs))
        schema = getattr(func, "_schema", None)
        if isinstance(func, OpOverload) and Tag.inplace_view in func.tags and _functional(func):
            return self._turn(_functional(func), args, kwargs)
        if isinstance(func, OpOverload) and schema.is_mutable:
            return self._write(func, schema, args, kwargs, plain_args, plain_kwargs)
        view = View(func, plain_args[1:], plain_kwargs, self._copies_views) if looks else None
        with disable_functional_mode():
            found = func(*plain_args, **plain_kwargs) if view is None \
                else view.call(plain_args[0])

        def wrap(t: Tensor, part: Any = None) -> FunctionalTensor:
            with flambeau.utils._python_dispatch._disable_current_modes():
                made = FunctionalTensor(t, self)
            if view is not None:
                made._memory = args[0]._memory
                made._views = (*args[0]._views, view if part is None else view.part(part))
            return made
        if isinstance(found, (list, tuple)):
            return type(found)([wrap(t, i) if isinstance(t, Tensor) else t
                                for i, t in enumerate(found)]) if type(found) in (list, tuple) \
                else type(found)(*[wrap(t, i) for i, t in enumerate(found)])
        return pytree.tree_map_only(Tensor, wrap, found)

    def _turn(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Let a tensor be a view of what it was: `t_` and its kind."""
        target = args[0]
        if not isinstance(target, FunctionalTensor):
            raise NotImplementedError(f"functionalization: {func} of a tensor from outside")
        view = View(func, args[1:], kwargs, self._copies_views)
        with disable_functional_mode():
            value = view.of(target.elem)
        with flambeau.utils._python_dispatch._disable_current_modes():
            seen = FunctionalTensor(value, self)
        target._array, target.elem = seen._array, value
        target._views = (*target._views, view)
        return target

    def _write(self, func: Any, schema: Any, args: Any, kwargs: Any, plain_args: Any,
               plain_kwargs: Any) -> Any:
        """Compute what an op would write, and let the arguments have that value."""
        given = schema.bound(args, kwargs)
        written = [v for a, v in zip(schema.arguments, given) if a.is_write]
        with disable_functional_mode():
            values = _written_values(func, schema, plain_args, plain_kwargs)
        targets = [t for w in written for t in (w if isinstance(w, (list, tuple)) else (w,))]
        for target, value in zip(targets, values):
            if isinstance(target, FunctionalTensor):
                if tuple(target.shape) != tuple(value.shape):
                    raise NotImplementedError(f"functionalization: {func} changes a shape")
                target.replace_(value)
            else:
                with disable_functional_mode():
                    target.copy_(value)
        if not schema.returns:
            return None
        return targets[0] if len(schema.returns) == 1 else tuple(targets)


def _written_values(func: Any, schema: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """What an op writes to its arguments, in their order."""
    functional = _functional(func)
    if functional is not None:
        kept = {k: v for k, v in kwargs.items()
                if not any(a.name == k and a.is_out for a in schema.arguments)}
        found = functional(*args, **kept)
        return list(found) if isinstance(found, (list, tuple)) else [found]
    given = schema.bound(args, kwargs)
    copies = [pytree.tree_map_only(Tensor, Tensor.clone, v) if a.is_write else v
              for a, v in zip(schema.arguments, given)]
    from flambeau._library.arguments import split
    new_args, new_kwargs = split(schema, copies)
    func(*new_args, **new_kwargs)
    return [t for a, v in zip(schema.arguments, copies) if a.is_write
            for t in (v if isinstance(v, (list, tuple)) else (v,))]


def _functional(func: Any) -> Any:
    """The overload that gives what another writes; None if there is none."""
    if func.namespace != "aten":
        return None
    name, overload = func._opname, func._overloadname
    if name in ("resize_", "set_", "as_strided_"):
        raise NotImplementedError(f"functionalization of {func}: it changes what memory is seen")
    if name.endswith("_") and not name.startswith("_"):
        base = name[:-1]
        packet = flambeau.ops.aten.__dict__.get(base) or getattr(flambeau.ops.aten, base, None)
        known = packet is not None and overload in packet.overloads()
        return packet.overload(overload) if known else None
    wanted = [(a.name, a.declared) for a in func._schema.arguments if not a.is_out]
    if len(wanted) < len(func._schema.arguments):
        packet = func.overloadpacket
        return next((packet.overload(o) for o in packet.overloads() if wanted == [
            (a.name, a.declared) for a in packet.overload(o)._schema.arguments]), None)
    return None


class disable_functional_mode(modes_set_aside):
    """Inside, ops run as they are; gives the mode that was at work. Other modes see them."""

    kind = FunctionalTensorMode


def mb_unwrap_functional_tensor(tensor: Tensor) -> Tensor:
    """The value of a functional tensor; another tensor as it is.

    >>> mb_unwrap_functional_tensor(flambeau.ones(1))
    tensor([1.])
    """
    return tensor.from_functional() if isinstance(tensor, FunctionalTensor) else tensor


def dispatch_functionalize(func: Callable[..., Any], mode: FunctionalTensorMode | None = None
                           ) -> Callable[..., Any]:
    """A function of plain tensors that runs `func` on functional ones."""
    mode = mode or FunctionalTensorMode()

    def inner(*args: Any, **kwargs: Any) -> Any:
        wrapped = pytree.tree_map_only(
            Tensor, lambda t: t if isinstance(t, FunctionalTensor)
            else FunctionalTensor.to_functional(t), (args, kwargs))
        with mode:
            outputs = func(*wrapped[0], **wrapped[1])
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, outputs)
    return inner


class BaseFunctionalizeAPI(ABC):
    """What the rule of an op that takes functions may ask for, to be run on functional tensors."""

    @abstractmethod
    def wrap_tensors(self, args: Any) -> Any:
        """Functional tensors with the values of tensors."""

    @abstractmethod
    def unwrap_tensors(self, args: Any) -> Any:
        """The values of functional tensors."""

    @abstractmethod
    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        """A function of plain tensors that runs another on functional ones."""

    @abstractmethod
    def redispatch_to_next(self) -> Any:
        """A context in which ops run as they are."""

    @abstractmethod
    def replace(self, input_tensor: Any, output_tensor: Any) -> None:
        """Give a functional tensor another value."""

    @abstractmethod
    def commit_update(self, tensor: Any) -> None:
        """Let all views of a functional tensor have its value."""

    @abstractmethod
    def sync(self, tensor: Any) -> None:
        """Compute the value of a functional tensor anew."""

    @abstractmethod
    def mark_mutation_hidden_from_autograd(self, tensor: Any) -> None:
        """Say that a write was not one that derivatives see."""


class PythonFunctionalizeAPI(BaseFunctionalizeAPI):
    """The functional tensors of this module."""

    def __init__(self, mode: FunctionalTensorMode | None = None, pre_dispatch: bool = False):
        self.mode = mode or FunctionalTensorMode(pre_dispatch=pre_dispatch)
        self.pre_dispatch = pre_dispatch

    def wrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(Tensor, FunctionalTensor.to_functional, args)

    def unwrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, args)

    def functionalize(self, inner_f: Callable[..., Any]) -> Callable[..., Any]:
        return dispatch_functionalize(inner_f, self.mode)

    def redispatch_to_next(self) -> Any:
        return disable_functional_mode()

    def replace(self, input_tensor: Any, output_tensor: Any) -> None:
        input_tensor.replace_(output_tensor)

    def commit_update(self, tensor: Any) -> None:
        tensor.commit_update()

    def sync(self, tensor: Any) -> None:
        tensor.sync()

    def mark_mutation_hidden_from_autograd(self, tensor: Any) -> None:
        tensor.mark_mutation_hidden_from_autograd()


class CppFunctionalizeAPI(PythonFunctionalizeAPI):
    """The same: there is one kind of functional tensors."""


class FunctorchFunctionalizeAPI(PythonFunctionalizeAPI):
    """The same, made for an interpreter of `torch.func`."""

    def __init__(self, interpreter: Any):
        super().__init__()
        self.interpreter = interpreter


__all__ = ["BaseFunctionalizeAPI", "CppFunctionalizeAPI", "FunctionalTensor",
           "FunctionalTensorMode", "FunctorchFunctionalizeAPI", "PythonFunctionalizeAPI",
           "disable_functional_mode", "dispatch_functionalize", "mb_unwrap_functional_tensor"]
