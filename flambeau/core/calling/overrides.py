"""Who takes a call over: modes and types (`__torch_function__`), and the levels of `modes`.

A call asks the types of its arguments before anything of it is looked at, as they may stand for
values that no binder knows: the most derived type is asked first, and each may decline. Most types
override nothing, which is remembered by type, so that the question costs one look into a set.

While some thread has a level, `intercept` asks in PyTorch's order: modes of functions, types,
autocast. What is left is bound to the op's schema and goes to the levels of this thread, innermost
first; each works with itself set aside, so that the ops it calls go to the next one.
"""
from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from flambeau._support.scopes import within
from flambeau.core import late_bound
from flambeau.core.modes import autocast, function_modes, levels, replaced

subclasses_enabled: ContextVar[bool] = ContextVar("torch_function_subclasses", default=True)
plain_types: set[type] = set()          # whose tensors an op may take without asking anybody
_PLAIN_TYPES = frozenset({int, float, bool, complex, str, type(None), slice, type(Ellipsis)})


def overriding_args(args: Any, kwargs: dict[str, Any] | None = None, depth: int = 0) -> list[Any]:
    """The arguments whose types override functions, one a type, subclasses first."""
    if not subclasses_enabled.get():
        return []
    found: list[Any] = []
    for arg in (*args, *kwargs.values()) if kwargs else args:
        cls = type(arg)
        if cls in plain_types or cls in _PLAIN_TYPES or cls in internal_types:
            continue
        if cls in (list, tuple):
            if depth < 1:
                for inner in overriding_args(arg, None, depth + 1):
                    _insert_subclass_first(found, inner)
        elif overrides(cls):
            _insert_subclass_first(found, arg)
    return found


def overrides(cls: type) -> bool:
    """Does this type have a `__torch_function__` that wants to be asked?"""
    if cls in plain_types or cls in internal_types:
        return False
    function = getattr(cls, "__torch_function__", None)
    return function is not None and not is_disabled(function)


def _disabled_torch_function(cls: Any, func: Any, types: Any, args: Any = (),
                             kwargs: dict[str, Any] | None = None) -> Any:
    """A subclass whose `__torch_function__` is this takes no part in overriding."""
    return NotImplemented


disabled_torch_function = classmethod(_disabled_torch_function)


def is_disabled(function: Any) -> bool:
    """Is the `__torch_function__` of a class the one that takes no part?"""
    return getattr(function, "__func__", function) is _disabled_torch_function


internal_types: set[type] = set()       # flambeau's own subclasses: wrappers and meta tensors
sparse_types: set[type] = set()         # those among them whose `_array` holds no values
own_rules: dict[type, Any] = {}         # what runs public calls on a type that no kernel may see
suspended: ContextVar[Any] = ContextVar("suspended", default=None)      # one that is at work


def _insert_subclass_first(found: list[Any], arg: Any) -> None:
    cls = type(arg)
    if any(type(f) is cls for f in found):
        return
    for i, other in enumerate(found):
        if issubclass(cls, type(other)):
            found.insert(i, arg)
            return
    found.append(arg)


def find_override(args: Any, kwargs: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """What runs a call with an argument that only rules of its own may touch; None without."""
    for arg in (*args, *kwargs.values()) if kwargs else args:
        if type(arg) in (list, tuple):
            found = find_override(arg, None, depth + 1) if depth < 64 else None   # it holds itself
        else:
            found = own_rules.get(type(arg))
        if found is not None and found is not suspended.get():
            return found
    return None


def needs_override(args: Any, kwargs: dict[str, Any] | None = None, depth: int = 0) -> bool:
    """Does any argument override functions, or need rules of its own?"""
    for arg in (*args, *kwargs.values()) if kwargs else args:
        cls = type(arg)
        if cls in plain_types or cls in _PLAIN_TYPES:
            continue
        if cls is tuple or cls is list:
            for inner in arg:
                if type(inner) not in plain_types and type(inner) not in _PLAIN_TYPES:
                    return bool(overriding_args(args, kwargs, depth) or find_override(args, kwargs))
        elif hasattr(cls, "__torch_function__"):
            return bool(overriding_args(args, kwargs, depth) or find_override(args, kwargs))
    return False


def has_torch_function(relevant: Any) -> bool:
    """Does any of these arguments (or a mode) override functions?"""
    if not isinstance(relevant, Iterable):
        raise TypeError("expected a sequence")
    return bool(function_modes.get()) or bool(overriding_args(relevant))


def public_name(op: Any) -> Any:
    """The callable under which `__torch_function__` knows an op."""
    return op.published or op.function


def call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ask the overriding arguments of a call, in turn."""
    relevant = overriding_args(args, kwargs)
    if not relevant and (own := find_override(args, kwargs)):
        return own(public_name(op), args, kwargs)
    return ask_torch_function(public_name(op), relevant, args, kwargs)


def ask_torch_function(function: Any, relevant: list[Any], args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> Any:
    types = tuple([type(r) for r in relevant])
    for arg in relevant:
        answer = type(arg).__torch_function__(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    name = getattr(function, "__name__", function)
    raise TypeError(f"no implementation found for '{getattr(function, '__module__', 'torch')}."
                    f"{name}' on types that implement __torch_function__: {list(types)}")


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Ask the overriding `relevant_args` of a call `public_api(*args, **kwargs)`, in turn."""
    return ask_mode_and_types(public_api, relevant_args, args, kwargs, True)


def ask_mode_and_types(public_api: Any, relevant_args: Any, args: Any, kwargs: dict[str, Any],
                       unbound: bool) -> Any:
    """Ask the mode that is at work, then the overriding arguments. `unbound`: see `intercept`."""
    if modes := function_modes.get():
        types = shown_types(tuple(relevant_args), {}, unbound)
        answer = within(function_modes, modes[:-1], modes[-1].__torch_function__, public_api, types,
                        args, kwargs)
        if answer is not NotImplemented:
            return answer
    relevant = overriding_args(relevant_args)
    if not relevant and (own := find_override(args, kwargs)):
        return own(public_api, args, kwargs)
    return ask_torch_function(public_api, relevant, args, kwargs)


def shown_types(args: tuple[Any, ...], kwargs: dict[str, Any], unbound: bool) -> tuple[type, ...]:
    """The types of a call's arguments that a mode is shown: those that override functions and,
    where no binder is asked first, all of its tensors, `Tensor` among them."""
    types = [type(r) for r in overriding_args(args, kwargs)]
    for arg in (*args, *kwargs.values()) if unbound else ():
        for each in arg if type(arg) in (list, tuple) else (arg,):
            cls = type(each)
            if cls in plain_types or cls in internal_types:
                cls = each.__class__
                if cls not in types and not is_disabled(cls.__torch_function__):
                    types.append(cls)
    return tuple(types)


def call_mode(mode: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
              unbound: bool) -> Any:
    """Ask a `TorchFunctionMode`, with it set aside."""
    types = shown_types(args, kwargs, unbound)
    answer = mode.__torch_function__(public_name(op), types, args, kwargs)
    if answer is NotImplemented:
        raise TypeError(f"mode {mode!r} returned NotImplemented for {op.name}")
    return answer


# ---- calls while a level is there ---------------------------------------------------------------

def intercept(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
              unbound: bool = False) -> Any:
    """A call with users' arguments while some thread has a level: function modes and subclasses
    that override come first, then the levels of this thread, innermost first. `unbound` says that
    the arguments are not bound to a schema: those of a method that takes none, or of a function of
    Python's."""
    kwargs = kwargs or {}
    if stack := function_modes.get():
        return within(function_modes, stack[:-1], call_mode, stack[-1], op, args, kwargs, unbound)
    if needs_override(args, kwargs):
        return call(op, args, kwargs)
    policy_of = autocast.get()
    if policy_of is not None:
        policy = policy_of(op)
        if policy is not None:
            return policy(op, args, kwargs)
    return dispatch_to_levels(op, args, kwargs)


def dispatch_to_levels(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that no type takes over: bound, and handed to the innermost level."""
    out = None
    if op.binder is not None and op.kind != "creation":
        stack: Any = levels.get()
        shown = bool(stack) and stack[-1].makes
        op, args, out = op.binder.bind(args, kwargs, shown)
        kwargs = {}
        if out is not None and shown:
            result = stack[-1].storing(op, args, out)
            if result is not NotImplemented:
                return result
    elif not op.composite:
        out = kwargs.pop("out", None)
    if replaced:
        op = replaced.get(op, op)
    result = _dispatch_composite(op, args, kwargs) if op.composite \
        else intercept_canonical(op, args)
    return result if out is None else late_bound.store(out, op, result, args)


def _dispatch_composite(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op that is made of others: only levels that want to see it as one are asked."""
    stack: Any = levels.get()
    for level in reversed(stack):
        if level.observes or (level.makes and (
                op.kind == "creation" or (level is stack[-1] and level.takes(op)))):
            return level.composite(op, op.direct, args, kwargs)
    if stack and stack[-1].makes and op.schema is not None:
        return stack[-1].body(op.direct, *args)
    return op.direct(*args, **kwargs)


def intercept_canonical(op: Any, canonical: tuple[Any, ...]) -> Any:
    """Hand a call with canonical arguments to the innermost level, or run it if there is none."""
    stack = levels.get()
    if not stack:
        if op.schema is not None and find_override(canonical) is not None:  # formulas call any op
            return late_bound.coerce_general(op, canonical)
        return op.plain(canonical)
    top = stack[-1]
    if op.parts is not None and ((top.derives and not top.has_rule(op)) or (
            op.implicit and not (top.observes or top.makes))):
        return op.parts(*canonical)
    return within(levels, stack[:-1], top, op, canonical)
