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

from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.kernels.refused import characters, no_kernel


def refusing(kinds: str, said: str = "", argument: int = 0) -> Callable[[Any], Any]:
    """Decorates the function of an op that refuses `kinds` of dtype of one of its tensors: letters
    of `kernels.refused.CHARACTERS`.

    `said` is the name of PyTorch's kernel ("the op's name_cpu" if left out) or, with blanks, a
    sentence in which `{}` is the type.
    """
    refused = characters(kinds)

    def declare(function: Any) -> Any:
        what = said or f"{function.__name__}_cpu"

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            check(args[argument] if len(args) > argument else None, refused, what)
            return function(*args, **kwargs)
        return call
    return declare


def check(value: Any, refused: str, said: str) -> None:
    if not isinstance(value, Tensor) or value._array.dtype.char not in refused:
        return
    if " " in said:
        raise RuntimeError(said.format(type_name(value.dtype)))
    raise no_kernel(said, value._array.dtype)
