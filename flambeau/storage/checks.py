"""What wrong calls of typed storages' constructors are told."""
from __future__ import annotations

from typing import Any

from flambeau.core import devices
from flambeau.core.dtypes import dtype as DType
from flambeau.core.tensor import Tensor

_OF_ONE_TYPE = ("no arguments", "(int size)", "(Sequence data)", "(*, UntypedStorage wrap_storage)")
_OPTIONS = "torch.device device, torch.dtype dtype"
_OF_ANY_TYPE = (f"(*, {_OPTIONS})", f"(int size, *, {_OPTIONS})", f"(Sequence data, *, {_OPTIONS})",
                "(*, UntypedStorage wrap_storage, torch.dtype dtype)")


def check_typed_storage(function: str, args: tuple[Any, ...], wrapped: Any, dtype: Any,
                        device: Any, untyped: type) -> None:
    """Raise if these arguments make no typed storage. A `function` of `__new__` knows its type."""
    fixed = function.endswith("__new__")
    forms = _OF_ONE_TYPE if fixed else _OF_ANY_TYPE

    def refuse(said: str, kind: type[Exception] = RuntimeError) -> None:
        raise kind(f"{function} received an invalid combination of arguments. Expected one of:\n"
                   + "".join(f" * {form}\n" for form in forms) + said)

    if fixed:
        for name, given in (("dtype", dtype), ("device", device)):
            if given is not None:
                refuse(f"Keyword argument '{name}' cannot be specified")
    if wrapped is not None:
        if args:
            refuse("No positional arguments should be given when using 'wrap_storage'")
        if not fixed:
            if dtype is None:
                refuse("Argument 'dtype' must be specified")
            if not isinstance(dtype, DType):
                refuse(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}", TypeError)
            if device is not None:
                refuse("Argument 'device' should not be specified when 'wrap_storage' is given")
        if not isinstance(wrapped, untyped):
            refuse(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrapped)}",
                   TypeError)
        return
    if len(args) > 1:
        refuse("Too many positional arguments")
    if device is not None and devices.device(device).type not in ("cpu", "meta"):
        raise RuntimeError(f"Storage device not recognized: {devices.device(device).type}")
    if args and isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    if args and (isinstance(args[0], Tensor) or not (
            isinstance(args[0], int) or hasattr(args[0], "__len__"))):
        refuse(f"Argument type not recognized: {type(args[0])}", TypeError)
