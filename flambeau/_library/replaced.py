"""Other kernels for the ops of `aten`, below autograd."""
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau.core import modes
from flambeau.core.calling.call import ANY, make_call
from flambeau.core.tensor import wrap


def replace(name: str, fn: Callable[..., Any], key: str) -> Any:
    """Let `fn`, a function of tensors, compute the op `aten::name`; gives what `restore` takes."""
    if key not in ("CPU", "CompositeExplicitAutograd"):
        raise NotImplementedError(f"Library.impl: kernels of aten for {key}; CPU is offered")
    original = getattr(flambeau, name.split("::")[-1].split(".")[0], None)
    original = getattr(original, "op", None)
    if original is None:
        raise RuntimeError(f"operator aten::{name} does not exist")
    modes.replaced[original] = _with_kernel(original, fn)
    modes.interceptors.append(replace)
    return original


def restore(original: Any) -> None:
    """Let an op have its own kernel again."""
    modes.replaced.pop(original, None)
    modes.interceptors.remove(replace)


def _with_kernel(op: Any, fn: Callable[..., Any]) -> Any:
    """An op with the derivative of `op` and another kernel, a function of tensors."""
    made = copy.copy(op)

    def kernel(*arrays: Any) -> Any:
        def tensor(value: Any) -> Any:
            return wrap(value) if hasattr(value, "dtype") and hasattr(value, "strides") else value
        with flambeau.no_grad():
            result = fn(*map(tensor, arrays))
        return tuple(r._array for r in result) if isinstance(result, tuple) else result._array
    if op.composite:
        made.direct = fn
        return made
    made.kernel = kernel
    made.direct = make_call(made, (), ANY)
    return made
