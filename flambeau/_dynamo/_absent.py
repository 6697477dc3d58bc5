"""Parts of PyTorch's tracer and compiler that programs name: what they would do is not there."""
from __future__ import annotations

from typing import Any


def absent_function(module: str, name: str, missing: str) -> Any:
    """A function that says what is missing."""
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{module}.{name}: {missing}")
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"Not offered: {missing}."
    return function


def absent_class(module: str, name: str, missing: str, base: Any = object) -> Any:
    """A class, to derive from and to ask `isinstance` of, without instances."""
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{module}.{name}: {missing}")
    return type(name, (base,), {"__init__": initialise, "__module__": module,
                                "__doc__": f"Has no instances: {missing}."})


TRACER = "there is no tracer of Python's frames (TorchDynamo)"
COMPILER = "there is no compiler (TorchInductor)"
