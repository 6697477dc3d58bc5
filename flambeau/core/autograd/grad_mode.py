"""Switching the recording of the graph off and on."""
from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import takes_nothing, type_name
from flambeau._support.own_methods import belong, define_in_subclasses, of_class, shown_as
from flambeau._support.scopes import Scope, absent, inside
from flambeau._support.source_locations import counter_of
from flambeau.core.autograd.recording import replay_of
from flambeau.core.modes import (
    Level,
    grad_layouts,
    grad_mode,
    inference,
    interceptors,
    is_inference_mode_enabled,
    levels,
)
from flambeau.core.tensor import LAZY


class ContextDecorator(Scope):
    """A context manager that also decorates functions, coroutines, generators and classes.

    A decorated generator runs each of its steps, not only its creation, inside the context.
    """

    _gives: Any = None

    def clone(self) -> ContextDecorator:
        """A context of the same kind, for the next call of what it decorates."""
        return type(self)()

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func):
            warnings.warn("Decorating classes is deprecated and will be disabled in future "
                          "versions. You should only decorate functions or methods. To preserve "
                          "the current behavior of class decoration, you can directly decorate the "
                          "`__init__` method and nothing else.", FutureWarning, stacklevel=2)
            orig_func.__init__ = self(orig_func.__init__)
            return orig_func
        return decorate(orig_func, self.clone)


of_class("_DecoratorContextManager", ContextDecorator)


def decorate(function: Callable[..., Any], context: Callable[[], Any]) -> Callable[..., Any]:
    """Run each call (of a generator: each step) inside what `context()` gives."""
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(function, context)
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def decorated(*args: Any, **kwargs: Any) -> Any:
            with context():
                return await function(*args, **kwargs)
    else:
        @functools.wraps(function)
        def decorated(*args: Any, **kwargs: Any) -> Any:
            return _run(context(), function, *args, **kwargs)
    return decorated


def _run(context: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    if getattr(type(context), "__enter__", None) is Scope.__enter__:
        return inside(context, function, *args, **kwargs)
    with context:
        return function(*args, **kwargs)


def _decorate_generator(
        function: Callable[..., Any], context: Callable[[], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        steps = function(*args, **kwargs)
        try:
            answer = _run(context(), steps.send, None)
            while True:
                try:
                    request = yield answer
                except GeneratorExit:
                    _run(context(), steps.close)
                    raise
                except BaseException as error:
                    answer = _run(context(), steps.throw, error)
                else:
                    answer = _run(context(), steps.send, request)
        except StopIteration as stop:
            return stop.value
    return decorated


class BareContextDecorator(ContextDecorator):
    """A context decorator without parameters, which decorates with and without parentheses."""

    @shown_as("_NoParamDecoratorContextManager.__new__")
    def __new__(cls, orig_func: Any = None) -> Any:
        self = Scope.__new__(cls)
        if orig_func is None:
            return self
        self.__init__()
        return self(orig_func)


class no_grad(BareContextDecorator):
    """Record no graph inside: results do not require gradients. Also a decorator.

    >>> import flambeau
    >>> x = flambeau.ones(2, requires_grad=True)
    >>> with no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _changes: Any = ((grad_mode, False),)
    __signature__ = inspect.Signature()


class enable_grad(no_grad):
    """Record the graph inside, also within `no_grad`. Also a decorator."""

    _changes = ((grad_mode, True),)
    __signature__ = inspect.Signature([
        inspect.Parameter("orig_func", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)])


@define_in_subclasses("__call__", "clone")
class _Switch(ContextDecorator):
    """Sets a state of this thread at once; as a context manager, until the block ends."""

    _early = True
    _variable: Any
    _setter: str                # PyTorch's name of what sets it
    mode: bool

    def __new__(cls, mode: bool) -> Any:
        if not isinstance(mode, bool):
            raise TypeError(f"{cls._setter}(): argument 'enabled' (position 1) must be bool, not "
                            f"{type_name(mode)}")
        self = super().__new__(cls)
        self.mode, self.prev = mode, self._variable.get()
        return self

    def __getnewargs__(self) -> tuple[bool]:        # a copy sets nothing before it is entered
        return self.mode,

    def _changes(self) -> Any:
        return (self._variable, self.mode),

    def __call__(self, orig_func: Any) -> Any:
        self._take_back()
        return super().__call__(orig_func)

    def clone(self) -> Any:
        """A switch with the same setting, for the next call of what it decorates."""
        return type(self)(self.mode)


class set_grad_enabled(_Switch):
    """Switch recording on or off at once; as a context manager, until the block ends."""

    _variable, _setter = grad_mode, "set_grad_enabled"

    @shown_as("set_grad_enabled.__init__")
    def __new__(cls, mode: bool) -> Any:
        return super().__new__(cls, mode)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __repr__ = __str__


class _InferenceLevel(Level):
    """Marks what ops make, so that autograd can refuse it later."""

    keeps_memory = True

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        result = op.call(*args)
        if not op.inplace and inference.get():      # derivatives of functions switch it off
            for tensor in result if isinstance(result, (tuple, list)) else (result,):
                if not hasattr(tensor, "_edge"):
                    continue
                if op.name == "detach":         # as the tensor that it was
                    tensor._counter = counter_of(args[0])
                elif tensor._edge is LAZY:
                    tensor._view.made = "inference"
                elif not tensor._inference:
                    tensor._inference = True
        return result


class inference_mode(ContextDecorator):
    """Like `no_grad`, and what is made inside can never enter a graph. Also a decorator.

    Results answer True to `is_inference()`; they count no versions for autograd, and using them
    where a graph is recorded raises RuntimeError.
    """

    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        self = super().__new__(cls)
        if isinstance(mode, bool):
            self.mode = mode
            return self
        self.mode = True
        return self(mode)

    def _changes(self) -> Any:
        changes: Any = (inference, self.mode), (grad_mode, not self.mode)
        if self.mode and not is_inference_mode_enabled():
            return (*_InferenceLevel()._changes(), *changes)
        return (levels, _without(_InferenceLevel) if not self.mode else levels.get()), *changes

    def clone(self) -> inference_mode:
        """An `inference_mode` with the same setting, for the next call of what it decorates."""
        return type(self)(self.mode)


class _ViewTracking(Level):
    """Lets views remember the ops that made them, not only their place in memory."""

    observes = keeps_memory = True

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        result = op.call(*args)
        if op.view and op.returns is None and result._edge is LAZY:
            result._view.replay = replay_of(op, args[0], args, always=True)
        return result

    def composite(self, op: Any, run: Any, args: Any, kwargs: Any) -> Any:
        return run(*args, **kwargs)


def _is_view_replay_enabled() -> bool:
    """Are views made again by the ops that made them, on this thread?"""
    return any(type(level) is _ViewTracking for level in levels.get())


is_view_replay_enabled = takes_nothing(_is_view_replay_enabled, home="torch._C")


def _without(kind: type) -> tuple[Level, ...]:
    """The levels of this thread that are not of this kind."""
    return tuple([level for level in levels.get() if type(level) is not kind])


class _force_original_view_tracking(_Switch):
    """Switch on or off, at once or until the block ends, that a view whose base was written to is
    made again by the ops that made it, so that its `grad_fn` is theirs and not `as_strided`'s."""

    _tracking = _ViewTracking()

    _setter = "set_view_replay_enabled"

    @shown_as("_force_original_view_tracking.__init__")
    def __new__(cls, mode: bool) -> Any:
        if not isinstance(mode, bool):
            raise TypeError(f"{cls._setter}(): argument 'enabled' (position 1) must be bool, not "
                            f"{type_name(mode)}")
        self = ContextDecorator.__new__(cls)
        self.mode, self.prev = mode, is_view_replay_enabled()
        return self

    def _changes(self) -> Any:
        if not self.mode:
            return (levels, _without(_ViewTracking)), (interceptors, self._tracking, absent)
        return () if is_view_replay_enabled() else self._tracking._changes()


multithreading: ContextVar[bool] = ContextVar("multithreading", default=True)


class set_multithreading_enabled(_Switch):
    """Remembered for those who ask: a backward pass always runs on the thread that began it."""

    _variable, _setter = multithreading, "set_multithreading_enabled"

    @shown_as("set_multithreading_enabled.__init__")
    def __new__(cls, mode: bool) -> Any:
        return super().__new__(cls, mode)


def _is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told."""
    return multithreading.get()


is_multithreading_enabled = takes_nothing(_is_multithreading_enabled, home="torch._C")


class enforce_grad_layout_policy(_Switch):
    """Whether a first gradient must have the strides of its leaf (by default it must). If not, one
    that nobody else holds becomes `grad` with the strides it has, which saves a copy.

    >>> import flambeau
    >>> x = flambeau.ones(3, 2).t().requires_grad_()
    >>> with enforce_grad_layout_policy(False):
    ...     (x * flambeau.ones(2, 3)).backward(flambeau.ones(2, 3))
    >>> x.stride(), x.grad.stride()
    ((1, 2), (3, 1))
    """

    _variable, _setter = grad_layouts, "set_grad_layout_enforcement_enabled"

    @shown_as("enforce_grad_layout_policy.__init__")
    def __new__(cls, enable: bool = True) -> Any:
        return super().__new__(cls, enable)


belong("torch.autograd.grad_mode", no_grad, enable_grad, set_grad_enabled, inference_mode,
       enforce_grad_layout_policy, set_multithreading_enabled, _force_original_view_tracking)

__all__ = ["enable_grad", "enforce_grad_layout_policy", "inference_mode",
           "is_multithreading_enabled", "no_grad",
           "set_grad_enabled", "set_multithreading_enabled"]
