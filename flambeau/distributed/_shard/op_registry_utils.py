"""Tables of functions that stand for ops."""
from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import signature
from typing import Any

from flambeau.distributed._shard.common_op_utils import _basic_validation


def _register_op(op: Any, func: Callable[..., Any], op_table: dict[Any, Any]) -> None:
    """Put `func(types, args, kwargs, process_group)` into a table."""
    if len(signature(func).parameters) != 4:
        raise TypeError("Custom sharded op function expects signature: (types, args, kwargs, "
                        f"process_group), but received signature: {signature(func)}")
    op_table[op] = func


def _decorator_func(wrapped_func: Callable[..., Any], op: Any,
                    op_table: dict[Any, Any]) -> Callable[..., Any]:
    """Register a function, with a check of its arguments."""
    @functools.wraps(wrapped_func)
    def wrapper(types: Any, args: Any, kwargs: Any, process_group: Any) -> Any:
        _basic_validation(op, args, kwargs)
        return wrapped_func(types, args, kwargs, process_group)
    _register_op(op, wrapper, op_table)
    return wrapper
