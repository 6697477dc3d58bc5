"""A public function that is one of two, as one of its arguments says."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

boolean_dispatched: weakref.WeakKeyDictionary[Callable[..., Any], dict[str, Any]] = \
    weakref.WeakKeyDictionary()


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any],
                     if_false: Callable[..., Any], module_name: str, func_name: str
                     ) -> Callable[..., Any]:
    """A function that is `if_true` or `if_false`, as the argument `arg_name` says.

    >>> def with_place(x, place=False): return max(x), x.index(max(x))
    >>> def without(x, place=False): return max(x)
    >>> largest = boolean_dispatch("place", 1, False, with_place, without, __name__, "largest")
    >>> largest([1, 3]), largest([1, 3], place=True)
    (3, (3, 1))
    """
    def fn(*args: Any, **kwargs: Any) -> Any:
        if arg_name in kwargs:
            flag = kwargs[arg_name]
        else:
            flag = args[arg_index] if arg_index < len(args) else default
        return (if_true if flag else if_false)(*args, **kwargs)

    docs = [f.__doc__ for f in (if_true, if_false) if f.__doc__ is not None]
    if len(docs) == 2:
        raise RuntimeError("only one function can have a docstring")
    fn.__doc__, fn.__annotations__ = docs[0] if docs else None, {}
    if module_name is not None:
        fn.__module__ = module_name
    if func_name is not None:
        fn.__name__ = func_name
    boolean_dispatched[fn] = {"if_true": if_true, "if_false": if_false, "index": arg_index,
                              "default": default, "arg_name": arg_name}
    return fn
