"""What PyTorch says about a call that has failed here, whatever it failed with.

Asked only then, so that a call that succeeds checks nothing.
"""
from __future__ import annotations

import re
import sys
from typing import Any

from flambeau._places import PACKAGE
from flambeau.core import overrides
from flambeau.core.op import Op
from flambeau.core.tensor import basis
from flambeau.ops.signatures import checks, complaint, names

_PREFIXED = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with
_INNER = tuple([f"{PACKAGE}{part}" for part in ("core", "ops", "transforms", "kernels")])


def c_name(op: Op) -> str:
    """The name of PyTorch's C++ function: `linalg_det`."""
    space = op.namespace if isinstance(op.namespace, str) else ""
    return f"{space}_{op.name}" if space in _PREFIXED else op.name


def misfit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool = False
           ) -> TypeError | None:
    """The error of a call whose arguments fit no signature; None if they fit one, or if the
    signatures of the op are not known."""
    spaces = (op.namespace,) if isinstance(op.namespace, str) else op.namespace or ("torch",)
    if not {"torch", *_PREFIXED} & {*spaces} and not (
            "nn.functional" in spaces and checks(op.name)):
        return None                             # other functions of Python, by other names
    if "nn.functional" in spaces and not bound and not checks(op.name) \
            and not {*kwargs} <= names(op.name):
        return None                             # of the layers' function of the same name
    said = complaint(c_name(op), args[1:] if bound else args, kwargs, bound)
    return TypeError(said) if said else None


def explain(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception, bound: bool
            ) -> Exception | None:
    """What to raise in place of the `error` of a call; None if it is right as it is."""
    caller = sys._getframe(1)
    inner = caller.f_code.co_filename.startswith(_INNER)
    if (inner and not isinstance(error, (TypeError, AttributeError))) \
            or overrides.wanted(args, kwargs):
        return None
    better = misfit(op, args, kwargs, bound)
    if better is not None:
        return better
    if isinstance(error, TypeError) and "<locals>" in str(error):
        return TypeError(re.sub(r"^[\w.<>]+\.<locals>\.\w+\(\)", f"{op.name}()", str(error)))
    return None


basis.explain = explain
