"""Dtypes that an op does not take although its mathematics would: PyTorch has no kernel for them.

>>> import flambeau
>>> flambeau.pdist(flambeau.ones(2, 2).half())
Traceback (most recent call last):
    ...
NotImplementedError: "pdist" not implemented for 'Half'
"""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from flambeau.core.promotion import is_half, type_name
from flambeau.core.tensor import Tensor

_KINDS: dict[str, Callable[[np.dtype], bool]] = {
    "half": is_half,
    "bool": lambda d: d.kind == "b",
    "int": lambda d: d.kind in "ui",
    "uint8": lambda d: d.kind == "u",
    "complex": lambda d: d.kind in "cW",
}


def refusing(kinds: str, said: str = "", argument: int = 0) -> Callable[[Any], Any]:
    """Decorates the function of an op that refuses `kinds` of dtype of one of its tensors.

    `said` is the name of PyTorch's kernel ("the op's name_cpu" if left out) or, with blanks, a
    sentence in which `{}` is the type.
    """
    tests = [_KINDS[kind] for kind in kinds.split()]

    def declare(function: Any) -> Any:
        what = said or f"{function.__name__}_cpu"

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check(args[argument] if len(args) > argument else None, tests, what)
            return function(*args, **kwargs)
        return call
    return declare


def check(value: Any, tests: Any, said: str) -> None:
    if not isinstance(value, Tensor) or not any(test(value._array.dtype) for test in tests):
        return
    name = type_name(value.dtype)
    if " " in said:
        raise RuntimeError(said.format(name))
    raise NotImplementedError(f"\"{said}\" not implemented for '{name}'")
