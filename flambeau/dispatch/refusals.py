"""What is said of a call with a tensor of another backend: sparse, quantised, nested, opaque.

The rules of these tensors take arguments as they come. PyTorch binds a call before it looks for a
kernel, so a call that fits no signature is wrong in the same words whatever its tensors are; a rule
begins with `check_fit`. An op without a rule is refused by `without_kernel`.
"""
from __future__ import annotations

import inspect
from typing import Any

from flambeau._support.devices.backends import has_no_kernel
from flambeau.core.op import Op
from flambeau.core.tensor import tensor_types
from flambeau.dispatch.aten.schemas import recorded
from flambeau.dispatch.function import Function
from flambeau.dispatch.python_functions import PythonFunction


def check_fit(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise the TypeError of a call of a public function that fits no signature."""
    op = getattr(function, "op", None) or (function if isinstance(function, Op) else None)
    binder = getattr(op, "binder", None) or getattr(function, "twin", None)
    if isinstance(binder, Function):
        binder.choose(args, kwargs)
    elif isinstance(binder, PythonFunction):
        try:
            inspect.signature(binder.body).bind(*args, **kwargs)
        except TypeError:
            binder.body(*args, **kwargs)            # Python says why


def without_kernel(name: str, backend: str, others: tuple[Any, ...] = (), out: Any = None
                   ) -> NotImplementedError:
    """What PyTorch says where an op has no kernel for a backend; `others` are the arguments after
    the first, which tell overloads apart."""
    space, _, name = name.rpartition(".")
    name = next((n for n in (f"{space}_{name}", name) if n in recorded()), name)
    overloads = recorded().get(name, {})
    given = "Tensor" if others and type(others[0]) in tensor_types else "Scalar"
    wanted = [f"{given}_out", "out"] if out is not None else ["default", given]
    overload = next((o for o in wanted if o in overloads), "default")
    full = name if overload == "default" else f"{name}.{overload}"
    return has_no_kernel(full, backend, overloads[overload].facts if overload in overloads else ())


__all__ = ["check_fit", "without_kernel"]
