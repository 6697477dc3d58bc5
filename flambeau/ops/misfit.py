"""What PyTorch says about a call whose arguments fit no signature.

Asked before the first call of a function with arguments of some types, and after any call that has
failed, whatever it failed with: a call like the one before it checks nothing but that.
"""
from __future__ import annotations

import re
import sys
from typing import Any

from flambeau._places import PACKAGE
from flambeau.core import overrides
from flambeau.core.op import Op
from flambeau.core.tensor import Tensor, basis
from flambeau.ops.signatures import checks, complaint, is_known, most, names

_PREFIXED = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with
_GUARDS = f"{PACKAGE}_guards.py"
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
    if "nn.functional" in spaces and not bound and not checks(op.name) and (
            not {*kwargs} <= names(op.name) or len(args) > most(op.name)):
        return None                             # of the layers' function of the same name
    name, ours = c_name(op), args[1:] if bound else args
    said = complaint(name, ours, kwargs, bound)
    if said and (any(is_known(other, bound) and not complaint(other, ours, kwargs, bound)
                     for other in op.aliases) or _as_method(name, args, kwargs, bound)):
        return None
    return TypeError(said) if said else None


def _as_method(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> bool:
    """Does a call of the function fit as one of the method, taken from the class?"""
    return not bound and is_known(name, True) and isinstance(next(iter(args), None), Tensor) \
        and not complaint(name, args[1:], kwargs, True)


def _called_by_ops() -> bool:
    """Was the public function called by one of ours, and not by a user?"""
    frame: Any = sys._getframe(2)
    if frame.f_code.co_filename == _GUARDS:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_INNER)


_lenient: set[Any] = set()


def admit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool) -> bool | TypeError:
    """Before the first call with arguments of these types: do they fit, from now on? If they do not,
    an error; but calls by our own ops may take liberties."""
    key = (op, bound, *map(type, args), *kwargs, *map(type, kwargs.values()))
    inner = _called_by_ops()
    if inner and key in _lenient:
        return False
    better = misfit(op, args, kwargs, bound)
    if better is None:
        return True
    if inner:
        _lenient.add(key)
    return False if inner or overrides.wanted(args, kwargs) else better


def explain(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], bound: bool, error: Exception
            ) -> Exception | None:
    """What to raise in place of the `error` of a call; None if it is right as it is."""
    if overrides.wanted(args, kwargs) or (
            not isinstance(error, (TypeError, AttributeError)) and _called_by_ops()):
        return None
    better = misfit(op, args, kwargs, bound)
    if better is not None:
        return better
    if isinstance(error, TypeError) and "<locals>" in str(error):
        return TypeError(re.sub(r"^[\w.<>]+\.<locals>\.\w+\(\)", f"{op.name}()", str(error)))
    return None


basis.admit, basis.explain = admit, explain
