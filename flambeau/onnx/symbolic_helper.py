"""Helpers for functions that say how an op is written to ONNX."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the types of the arguments after the graph: "v" a value, "i" an integer, "f" a
    float, "s" a string, "is" a list … Numbers are passed on as they are."""
    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(graph: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(arg_descriptors):
                raise AssertionError(
                    f"A mismatch between the number of arguments ({len(args)}) and their "
                    f"descriptors ({len(arg_descriptors)}) was found at symbolic function "
                    f"'{function.__name__}'.")
            if kwargs.keys() - {"_outputs"}:
                raise AssertionError(f"Symbolic function {function.__name__}'s '**kwargs' can "
                                     "only contain '_outputs' key at '**kwargs'.")
            return function(graph, *args, **kwargs)
        return checked
    return decorator
