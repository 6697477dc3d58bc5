"""What PyTorch says about arguments that fit no signature of an op.

Asked only after a call has failed, so that a call that succeeds checks nothing.
"""
from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARARGS, unwrap
from typing import Any

import numpy as np

from flambeau.core import devices, dtypes
from flambeau.core.op import Op
from flambeau.core.tensor import Tensor

_PREFIXED = ("linalg", "special", "fft")        # namespaces that PyTorch's own names begin with
_NAMES = {"Scalar": "Number", "ScalarType": "torch.dtype", "Layout": "torch.layout",
          "Device": "torch.device", "MemoryFormat": "torch.memory_format",
          "Generator": "torch.Generator", "SymInt": "int"}
_PLURALS = {"Tensor": "Tensors", "int": "ints", "float": "floats", "Scalar": "Scalars"}


def c_name(op: Op) -> str:
    """The name of PyTorch's C++ function: `linalg_det`."""
    space = op.namespace if isinstance(op.namespace, str) else ""
    return f"{space}_{op.name}" if space in _PREFIXED else op.name


def _is_scalar_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1 and not value.requires_grad


def _is_int(value: Any) -> bool:
    if isinstance(value, Tensor):
        return _is_scalar_tensor(value) and value._array.dtype.kind in "iu"
    return hasattr(value, "__index__") and not isinstance(value, (bool, np.bool_))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number, np.bool_)) or (
        _is_scalar_tensor(value) and value.dim() == 0) or hasattr(value, "__sym_float__")


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: isinstance(value, Tensor),
    "int": _is_int, "SymInt": _is_int, "Scalar": _is_number,
    "float": lambda value: _is_number(value) and not isinstance(value, complex),
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "str": lambda value: isinstance(value, str),
    "ScalarType": lambda value: isinstance(value, dtypes.dtype) or value in (int, float, bool),
    "Device": lambda value: isinstance(value, (devices.device, str, int)),
}


def _fits(kind: str, value: Any) -> bool:
    if kind.endswith("?"):
        return value is None or _fits(kind[:-1], value)
    kind, bracket, size = kind.partition("[")
    if bracket:
        if isinstance(value, (list, tuple)):
            return kind == "Tensor" or all(_CHECKS.get(kind, _anything)(item) for item in value)
        return kind == "int" and size != "]" and _is_int(value)
    return _CHECKS.get(kind, _anything)(value)


def _anything(value: Any) -> bool:
    return True


def _kind_name(kind: str) -> str:
    kind, bracket, _ = kind.removesuffix("?").partition("[")
    kind = kind.partition("(")[0].strip()
    return f"tuple of {_PLURALS.get(kind, kind)}" if bracket else _NAMES.get(kind, kind)


def _type_name(value: Any) -> str:
    name = type(value).__name__
    if isinstance(value, Tensor):
        return "Tensor"
    return f"torch.{name}" if isinstance(value, (dtypes.dtype, devices.device)) else name


def _complaint(name: str, arguments: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What does not fit the signature; nothing if all does."""
    rest, places = dict(kwargs), [a for a in arguments if not a.kwarg_only]
    if len(args) > len(places) and not (places and "int[" in places[-1].type):
        s, were = "" if len(places) == 1 else "s", "was" if len(args) == 1 else "were"
        return (f"{name}() takes {len(places)} positional argument{s} but {len(args)} {were} "
                "given")
    for i, argument in enumerate(arguments):
        title = "input" if argument.name == "self" else argument.name
        positional = not argument.kwarg_only and i < len(args)
        if positional:
            value = args[i]
        elif title in rest:
            value = rest.pop(title)
        elif argument.has_default_value():
            continue
        else:
            return f'{name}() missing 1 required positional arguments: "{title}"'
        varargs = positional and len(args) > len(places) and argument is places[-1]
        if not _fits(argument.type, args[i:] if varargs else value):
            where = f" (position {i + 1})" if positional else ""
            return (f"{name}(): argument '{title}'{where} must be {_kind_name(argument.type)}, "
                    f"not {_type_name(value)}")
    rest.pop("out", None)
    if rest:
        return f"{name}() got an unexpected keyword argument '{next(iter(rest))}'"
    return ""


def misfit(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    """The error of a call whose arguments fit no signature; None if they fit one, or if the
    signatures of the op are not known."""
    from flambeau.export._overloads import schemas
    spaces = (op.namespace,) if isinstance(op.namespace, str) else op.namespace or ("torch",)
    if not {"torch", *_PREFIXED} & {*spaces}:       # other functions of Python, by other names
        return None
    code = unwrap(op.body if op.composite else op.arguments).__code__
    if code.co_flags & CO_VARARGS:                  # which PyTorch's own Python unpacks
        return None
    name = c_name(op)
    known = list(schemas().get(name, {}).values())
    named = {argument.name for arguments in known for argument in arguments}
    ours = set(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]) - named - {"input"}
    kwargs = {key: value for key, value in kwargs.items() if key not in ours}
    complaints = [_complaint(name, arguments, args, kwargs) for arguments in known]
    if not known or "" in complaints:
        return None
    count = len(args) + len(kwargs)
    likely = {complaint for complaint, arguments in zip(complaints, known)
              if sum(not a.has_default_value() for a in arguments) <= count <= len(arguments)}
    if len(likely or set(complaints)) == 1:
        return TypeError((likely or set(complaints)).pop())
    got = ", ".join([*map(_type_name, args),
                     *(f"{key}={_type_name(value)}" for key, value in kwargs.items())])
    expected = "".join([f"\n * ({_written(arguments)})" for arguments in known])
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but "
                     f"expected one of:{expected}\n")


def _written(arguments: Any) -> str:
    parts, by_name = [], False
    for argument in arguments:
        if argument.kwarg_only and not by_name:
            parts.append("*")
            by_name = True
        title = "input" if argument.name == "self" else argument.name
        default = f" = {argument.default}" if argument.has_default_value() else ""
        parts.append(f"{_kind_name(argument.type)} {title}{default}")
    return ", ".join(parts)
