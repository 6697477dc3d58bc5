"""Reading the arguments of `Module.to` and of `PackedSequence.to`."""

from __future__ import annotations

import flambeau
from flambeau.schema.errors import type_name
from flambeau.schema.hash_order import in_hash_order

_SIGNATURES = (
    "to() received an invalid combination of arguments - got ({given}), but expected one of:\n"
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool "
    "copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype dtype, bool "
    "non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n * "
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
    "memory_format = None)\n")


def parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of any of the forms that `to` of a module
    accepts."""
    *found, copy = conversion(args, kwargs)
    if copy is not None:
        raise RuntimeError(".to() does not accept copy argument")
    return tuple(found)


def conversion(args, kwargs):
    """What the arguments of `to` say: (device, dtype, non_blocking, memory_format, copy)."""
    values = {"device": None, "dtype": None, "non_blocking": False}
    memory_format = kwargs.pop("memory_format", None)
    rest = list(args)
    names = ["device", "dtype", "non_blocking", "copy"]
    if (rest and isinstance(rest[0], flambeau.Tensor)) or "tensor" in kwargs:
        other = rest.pop(0) if rest else kwargs.pop("tensor")
        values.update(device=other.device, dtype=other.dtype)
        names = names[2:]
    elif rest and isinstance(rest[0], flambeau.dtype):
        names = names[1:]
    wrong = len(rest) > len(names) or not set(kwargs).issubset(names[len(rest):])
    values.update(zip(names, rest), **kwargs)
    dtype, device = values["dtype"], values["device"]
    wrong = wrong or not isinstance(values["non_blocking"], bool)
    wrong = wrong or not (dtype is None or isinstance(dtype, flambeau.dtype))
    wrong = wrong or not (device is None or isinstance(device, (str, int, flambeau.device)))
    if wrong:
        given = [type_name(value) for value in args]
        given += [f"{name}={type_name(kwargs[name])}" for name in in_hash_order(kwargs)]
        raise TypeError(_SIGNATURES.format(given=", ".join(given if args else [*given, ""])))
    if device is not None:
        device = flambeau.device(device)
    return device, dtype, bool(values["non_blocking"]), memory_format, values.get("copy")
