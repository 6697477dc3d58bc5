"""The public side of `__torch_function__`: modes, ways around it, and the default of subclasses."""
from __future__ import annotations

from typing import Any

from flambeau.core import modes
from flambeau.core.overrides import ask, overriding, rules_for, subclasses_enabled
from flambeau.core.tensor import Tensor, basis, tensor_types
from flambeau.transforms import watched_members


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Ask the overriding `relevant_args` of a call `public_api(*args, **kwargs)`, in turn."""
    modes_active = modes.function_modes.get()
    if modes_active:
        token = modes.function_modes.set(modes_active[:-1])
        try:
            types = tuple([type(r) for r in overriding(relevant_args)])
            answer = modes_active[-1].__torch_function__(public_api, types, args, kwargs)
            if answer is not NotImplemented:
                return answer
        finally:
            modes.function_modes.reset(token)
    relevant = overriding(relevant_args)
    if not relevant and (own := rules_for(args, kwargs)):
        return own(public_api, args, kwargs)
    return ask(public_api, relevant, args, kwargs)


class DisableTorchFunctionSubclass:
    """Inside, subclasses of Tensor do not override functions."""

    def __enter__(self) -> None:
        self._token = subclasses_enabled.set(False)

    def __exit__(self, *exception: Any) -> None:
        subclasses_enabled.reset(self._token)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither subclasses nor modes override functions."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = modes.function_modes.set(())

    def __exit__(self, *exception: Any) -> None:
        modes.function_modes.reset(self._modes)
        super().__exit__(*exception)


def default_torch_function(cls: type, function: Any, types: Any, args: tuple[Any, ...],
                           kwargs: dict[str, Any]) -> Any:
    """What a subclass does that does not say otherwise: run it, give results the subclass."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = function(*args, **kwargs)
    if function in _KEEPS_TYPE:
        return result
    return as_subclass(result, cls)


_KEEPS_TYPE: set[Any] = set()


def as_subclass(result: Any, cls: type) -> Any:
    """Tensors in `result`, also inside tuples and lists, as instances of `cls`."""
    if type(result) in tensor_types:
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[as_subclass(r, cls) for r in result])
    if type(result) in (tuple, list):
        return type(result)([as_subclass(r, cls) for r in result])
    return result


class TorchFunctionMode:
    """While entered, takes over every public function: `__torch_function__(func, types, args,
    kwargs)` on the instance. Modes nest; inside its own method a mode is set aside."""

    sees_members = True                 # also properties and methods that are no ops

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        if self.sees_members:
            watched_members.enter()
        modes.interceptors.append(self)
        modes.function_modes.set((*modes.function_modes.get(), self))
        return self

    def __exit__(self, *exception: Any) -> None:
        modes.function_modes.set(modes.function_modes.get()[:-1])
        modes.interceptors.remove(self)
        if self.sees_members:
            watched_members.leave()


def is_tensor_like(value: Any) -> bool:
    """Is this a Tensor, or of a type that overrides functions?"""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


basis.handle_torch_function, basis.default_torch_function = (handle_torch_function,
                                                             default_torch_function)
