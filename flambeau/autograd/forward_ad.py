"""Forward mode: tensors that carry a tangent.

>>> import flambeau
>>> with dual_level():
...     x = make_dual(flambeau.tensor(2.0), flambeau.tensor(1.0))
...     unpack_dual(x ** 3).tangent
tensor(12.)
"""
from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any, NamedTuple

from flambeau._support.c_functions import type_name
from flambeau._support.scopes import within
from flambeau.core.autograd.grad_mode import ContextDecorator
from flambeau.core.devices import cpu
from flambeau.core.modes import levels
from flambeau.core.tensor import Tensor, array_root, plain_types
from flambeau.ops.overlap import slot
from flambeau.ops.view.copying import alias
from flambeau.transforms.forward import ForwardLevel, check_tangent

_entered: list[_DualLevel] = []


class UnpackedDualTensor(NamedTuple):
    """A dual tensor's value and its tangent (None if it has none)."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter the level of forward mode; there is one, which does not nest (`func.jvp` does)."""
    return dual_level().__enter__()


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the level: its tangents are gone."""
    if level is not None and level != len(_entered) - 1:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was "
                           "created. This is not supported.")
    if not _entered:
        raise RuntimeError("Dual level must be a positive number.")
    _entered[-1].scope.__exit__()


class _DualLevel(ForwardLevel):
    """The level of the functions here."""

    def __init__(self, scope: dual_level):
        self.scope = scope


class dual_level(ContextDecorator):
    """A context in which tensors may carry tangents."""

    _gives = 0

    __signature__ = inspect.Signature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs:
            raise TypeError("dual_level() takes no arguments")
        return super().__new__(cls)

    def _changes(self) -> Any:
        if any(level in levels.get() for level in _entered):
            raise RuntimeError("Nested forward mode AD is not supported at the moment")
        level = _DualLevel(self)
        return (*level._changes(), (_entered, level))


def current_level() -> ForwardLevel | None:
    return _entered[-1] if _entered else None


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return len(_entered) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _without(level: ForwardLevel) -> tuple[Any, ...]:
    return tuple([other for other in levels.get() if other is not level])


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` as a view that carries `tangent`."""
    at = current_level()
    if at is None:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, "
                           "make sure to enter_dual_level() first.")
    if level is not None and level != 0:
        raise RuntimeError("Invalid level given to _make_dual")
    check_tangent(tensor, tangent)
    if at.tangent(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same "
                           "level0 is not supported.")
    if at.tangent(tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward "
                           "gradient at the same level 0 is not supported.")
    result = within(levels, _without(at), alias, tensor)
    at.set_tangent(result, within(levels, _without(at), _laid_out_as, tensor, tangent))
    return result


def _laid_out_as(tensor: Tensor, tangent: Tensor) -> Tensor:
    """The tangent in memory as that of `tensor`, so that all views of the one are of the other."""
    strides, conjugated, negated = tensor.stride(), tensor.is_conj(), tensor.is_neg()
    if not (type(tensor) is Tensor or conjugated or negated) or tensor._device is not cpu or (
            tensor.numel() and 0 in strides) or tangent.is_sparse:
        return tangent
    offset, count = _window(tensor)
    same = (tangent.is_conj(), tangent.is_neg()) == (conjugated, negated) and all(
        n < 2 or s == t for n, s, t in zip(tensor.shape, strides, tangent.stride()))
    if same and (not tensor.numel() or type(tangent) not in plain_types
                 or _window(tangent) == (offset, count)):
        return tangent
    memory = tangent.new_zeros(count).as_strided(tensor.shape, strides, offset)
    if conjugated:
        tangent = tangent.conj()
    memory.copy_(-tangent if negated else tangent)
    memory = memory.conj() if conjugated else memory
    return memory._neg_view() if negated else memory


def _window(tensor: Tensor) -> tuple[int, int]:
    """Where the elements begin in their memory, and how much there is."""
    array = slot(tensor)
    return tensor.storage_offset(), array_root(array).nbytes // array.itemsize


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a dual tensor, as a view, and its tangent."""
    at = current_level()
    if at is None:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError("_unpack_dual(): argument 'dual' (position 1) must be Tensor, not "
                        f"{type_name(tensor)}")
    tangent = within(levels, _without(at), at.tangent, tensor)
    primal = within(levels, _without(at), alias, tensor)
    at.hide_tangent(primal)
    return UnpackedDualTensor(primal, tangent)


_set_aside: ContextVar[Any] = ContextVar("forward_levels_set_aside", default=None)


def _is_fwd_grad_enabled() -> bool:
    """Are tangents propagated?"""
    return _set_aside.get() is None


def set_fwd_grad_enabled(mode: bool) -> None:
    """`_set_fwd_grad_enabled` from now on."""
    for variable, value in _set_fwd_grad_enabled(mode)._changes():
        variable.set(value)


class _set_fwd_grad_enabled(ContextDecorator):
    """Set the levels of forward mode aside (False), so that tangents are not propagated."""

    def __init__(self, mode: bool):
        self.mode = mode

    def _changes(self) -> Any:
        stack, whole = levels.get(), _set_aside.get()
        if self.mode is (whole is None):
            return ()
        if whole is None:
            return (levels, tuple([lv for lv in stack if not isinstance(lv, ForwardLevel)])), (
                _set_aside, stack)
        return (levels, (*whole, *[lv for lv in stack if lv not in whole])), (_set_aside, None)

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual",
           "unpack_dual"]
