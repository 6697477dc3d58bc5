"""What stands between a public function and its callers when a call fails, in Python: the twin of
`guarded` in `csrc/tensors.h`.

A call is `admit`ted once for the types of its arguments, and what `explain` gives is raised in
place of an error. A method numbers its arguments otherwise than the function, and so is another
callable with the same body. Ops that are declared by their schemas need none of this.
"""
from __future__ import annotations

from functools import update_wrapper
from inspect import CO_VARARGS, unwrap
from types import MethodType
from typing import Any

from flambeau._support.source_locations import native
from flambeau.core import late_bound
from flambeau.core.modes import interceptors


def guarded(closure: Any, op: Any, bound: bool = False, operates: bool = False) -> Any:
    """`closure` with the errors that `explain` gives; `bound` to a tensor? as an operator?"""
    fitting: set[Any] = set()
    if getattr(closure, "guard", None) is closure:      # its own guard, no copy from another
        closure = closure.unguarded

    def guard(*args: Any, **kwargs: Any) -> Any:
        if not (operates or interceptors):
            key = (len(args), *map(type, args), *kwargs, *map(type, kwargs.values()))
            if key not in fitting:
                found = late_bound.admit(op, args, kwargs, bound)
                if found is True:
                    fitting.add(key)
                elif found is not False:
                    try:
                        raise found
                    finally:
                        del found           # this frame, which the error keeps, must not keep it
        try:
            return closure(*args, **kwargs)
        except Exception as error:
            better = late_bound.explain(op, args, kwargs, bound, error)
            if type(better) is tuple:
                return better[0]
            if operates and isinstance(better or error, TypeError):
                return NotImplemented
            if better is None:
                raise
            try:
                raise better from None
            finally:
                del better
    call: Any = update_wrapper(guard, closure)
    call.guard, call.unguarded = call, closure
    call.twin = None if bound else lambda operates: guarded(closure, op, True, operates)
    return call


class Method:
    """The method of a function, where that is not one in C; called as it is, it takes the tensor
    first. Names and attributes that the function gets after this has been made are its own too."""

    def __init__(self, function: Any, operates: bool):
        self.function, self.operates = function, operates
        self.made: Any = None
        update_wrapper(self, function, ("__module__", "__doc__"), ())

    def bound(self) -> Any:
        """The callable that numbers its arguments as methods do."""
        if self.made is None:
            self.made = self.function.twin(self.operates)
            own = dict(vars(self.made))
            update_wrapper(self.made, self.function)
            vars(self.made).update(own)             # its guard, and what that guards
        return self.made

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self.bound() if hasattr(self.function, "takes_more") else self.function
        return MethodType(self.made or self.bound(), instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.bound()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return repr(self.function)


def method(function: Any, operates: bool = False) -> Any:
    """What stands in the class for a function; one that `operates` is an operator, which says
    NotImplemented for a TypeError."""
    op = getattr(function, "op", None)
    body = getattr(op, "body", None) or getattr(op, "arguments", None)
    code = getattr(unwrap(body), "__code__", None) if body is not None else None
    if code is not None and code.co_flags & CO_VARARGS and code.co_argcount == 1:
        function.takes_more = True              # numbers one by one
    if native is not None:
        return native.fast_method(function, operates)
    return Method(function, operates) if getattr(function, "twin", None) else function
