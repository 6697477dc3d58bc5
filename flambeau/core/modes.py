"""What may happen around a call: grad mode, inference mode, and the levels that take a call over.

An op begins with one truth test, `if interceptors:`. The list is empty unless some thread has
entered a *level*: a `vmap`, a forward-mode level, a `__torch_function__` mode, a tracer. Then
`overrides.intercept` asks the calling thread's own stack, innermost level first; what is left of
the stack while a level works is what the ops that it calls see.

    >>> class Count(Level):
    ...     calls = 0
    ...     def __call__(self, op, args):
    ...         self.calls += 1
    ...         return op.call(*args)
    >>> import flambeau
    >>> x = flambeau.ones(2)
    >>> with Count() as count:
    ...     y = x * 3 + x
    >>> count.calls
    2
"""
from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flambeau._support.c_functions import takes_nothing
from flambeau._support.scopes import Scope

interceptors: list[Any] = []          # an entry for each active level of any thread; never rebound
levels: ContextVar[tuple[Level, ...]] = ContextVar("levels", default=())
function_modes: ContextVar[tuple[Any, ...]] = ContextVar("function_modes", default=())
autocast: ContextVar[Any] = ContextVar("autocast", default=None)    # finds what casts for an op
replaced: dict[Any, Any] = {}         # ops to those that `torch.library` has put in their places


class Level(Scope):
    """Takes over the calls of its thread while it is entered: `level(op, canonical_arguments)`.
    It is asked about ops; `op.call(*arguments)` is the call without it. One that only `observes`
    is shown composites too: `level.composite(op, run, args, kwargs)`; one that `makes` is shown
    those that make new tensors, and, as the innermost level, those that it `takes`, and members
    that change their tensor: `level.member(overload, values)`."""

    observes = makes = keeps_memory = False     # of tensors: what they look at stays theirs
    derives = False                 # what an op gives, as all that it is made of gives it?

    def _changes(self) -> Any:
        return (levels, (*levels.get(), self)), (interceptors, self)

    def has_rule(self, op: Any) -> bool:
        """Does it know better than to derive the parts that an op is made of?"""
        return False

    def __call__(self, op: Any, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError


def shows_ops() -> bool:
    """Does the innermost level of this thread show ops to `__torch_dispatch__`? That says what
    their results are: what runs below makes them, or a tensor of the user's own."""
    stack = interceptors and levels.get()
    return bool(stack) and stack[-1].makes


def intercepts_ops() -> bool:
    """Does a level of this thread take ops over, and does not only look on? Then nothing may be
    computed but by ops."""
    stack = levels.get()
    return bool(stack) and any(not level.observes for level in stack)


# ---- grad mode ----------------------------------------------------------------------------------

grad_mode: ContextVar[bool] = ContextVar("grad_mode", default=True)
grad_enabled = grad_mode.get
grad_layouts: ContextVar[bool] = ContextVar("grad_layouts", default=True)    # enforced?
inference: ContextVar[bool] = ContextVar("inference_mode", default=False)
# does a transform of functions derive here, also by tensors that were made in inference mode?
deriving: ContextVar[bool] = ContextVar("deriving", default=False)


@takes_nothing
def is_grad_enabled() -> bool:
    """Is the graph being recorded on this thread?"""
    return grad_enabled()


@takes_nothing
def is_inference_mode_enabled() -> bool:
    """Is inference mode on, on this thread?"""
    return inference.get()


# ---- anomaly mode --------------------------------------------------------------------------------

class Anomaly:
    """The state of anomaly mode; `run` is how nodes run in it (see `autograd.anomaly_mode`)."""

    enabled = False
    check_nan = True
    run: Any = None


anomaly = Anomaly()
