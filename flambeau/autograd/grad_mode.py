"""Switching the recording of the graph off and on."""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from flambeau.core.modes import (
    Level,
    grad_enabled,
    inference,
    is_inference_mode_enabled,
    levels,
    set_grad_mode,
)


class ContextDecorator:
    """A context manager that also decorates functions, coroutines, generators and classes.

    A decorated generator runs each of its steps, not only its creation, inside the context.
    """

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exception: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> ContextDecorator:
        return type(self)()

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            warnings.warn("Decorating classes is deprecated and will be disabled in future "
                          "versions. You should only decorate functions or methods. To preserve "
                          "the current behavior of class decoration, you can directly decorate the "
                          "`__init__` method and nothing else.", FutureWarning, stacklevel=2)
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def decorated(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def decorated(*args: Any, **kwargs: Any) -> Any:
                with self.clone():
                    return function(*args, **kwargs)
        return decorated

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            steps = function(*args, **kwargs)
            try:
                with self.clone():
                    answer = steps.send(None)
                while True:
                    try:
                        request = yield answer
                    except GeneratorExit:
                        with self.clone():
                            steps.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            answer = steps.throw(error)
                    else:
                        with self.clone():
                            answer = steps.send(request)
            except StopIteration as stop:
                return stop.value
        return decorated


class no_grad(ContextDecorator):
    """Record no graph inside: results do not require gradients. Also a decorator.

    >>> import flambeau
    >>> x = flambeau.ones(2, requires_grad=True)
    >>> with no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _mode = False

    def __enter__(self) -> None:
        self.prev = grad_enabled()
        set_grad_mode(self._mode)

    def __exit__(self, *exception: Any) -> None:
        set_grad_mode(self.prev)

    def __new__(cls, function: Any = None) -> Any:
        self = object.__new__(cls)
        return self if function is None else self(function)


class enable_grad(no_grad):
    """Record the graph inside, also within `no_grad`. Also a decorator."""

    _mode = True


class set_grad_enabled(ContextDecorator):
    """Switch recording on or off at once; as a context manager, until the block ends."""

    def __init__(self, mode: bool):
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): mode must be a bool, not {type(mode).__name__}")
        self.mode, self.prev = mode, grad_enabled()
        set_grad_mode(mode)

    def __call__(self, function: Any) -> Any:
        set_grad_mode(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        set_grad_mode(self.mode)

    def __exit__(self, *exception: Any) -> None:
        set_grad_mode(self.prev)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class _InferenceLevel(Level):
    """Marks what ops make, so that autograd can refuse it later."""

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        result = op.call(*args)
        if not op.inplace and (not op.view or getattr(args[0], "_inference", False)):
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                if hasattr(tensor, "_edge"):
                    tensor._inference = True
        return result


class inference_mode(ContextDecorator):
    """Like `no_grad`, and what is made inside can never enter a graph. Also a decorator.

    Results answer True to `is_inference()`; they count no versions for autograd, and using them
    where a graph is recorded raises RuntimeError.
    """

    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        if isinstance(mode, bool):
            self.mode = mode
            return self
        self.mode = True
        return self(mode)

    def __enter__(self) -> None:
        self._saved = grad_enabled(), is_inference_mode_enabled()
        self._level = _InferenceLevel() if self.mode and not is_inference_mode_enabled() else None
        self._set_aside = None
        if self._level is not None:
            self._level.__enter__()
        elif not self.mode and is_inference_mode_enabled():
            self._set_aside = levels.set(
                tuple(level for level in levels.get() if type(level) is not _InferenceLevel))
        inference.set(self.mode)
        set_grad_mode(not self.mode)

    def __exit__(self, *exception: Any) -> None:
        set_grad_mode(self._saved[0])
        inference.set(self._saved[1])
        if self._level is not None:
            self._level.__exit__(*exception)
        elif self._set_aside is not None:
            levels.reset(self._set_aside)

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


for _cls in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _cls.__module__ = "torch.autograd.grad_mode"

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]
