"""The names that generated code uses: which are taken, which mean something, and new ones."""
from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

import flambeau


class _CustomBuiltin(NamedTuple):
    """A name that all generated code may use: the statement that brings it, and the object."""
    import_str: str
    obj: Any


_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", flambeau)
_register_custom_builtin("device", "from torch import device", flambeau.device)


def reserved_names() -> dict[str, Any]:
    """What every piece of code can name."""
    if "fx_pytree" not in _custom_builtins:
        from flambeau.fx import _pytree as fx_pytree
        from flambeau.utils import _pytree as pytree
        _register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
        _register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)
    return {name: value.obj for name, value in _custom_builtins.items()}


class Namespace:
    """Names that are taken, and new ones like them."""

    def __init__(self) -> None:
        self._used_names: set[str] = set()
        self._obj_to_name: dict[Any, str] = {}
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that is legal and free, for an object that may have one."""
        if obj is not None and id(obj) in self._obj_to_name:
            return self._obj_to_name[id(obj)]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (match[1], int(match[2])) if match else (candidate, None)
        if number is None or candidate in self._used_names:
            number = self._base_count.get(candidate, 0)
        while candidate in self._used_names or self._illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self.associate_name_with_obj(candidate, obj)
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Let an object have a name."""
        self._obj_to_name[id(obj)] = name

    @staticmethod
    def _illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in _custom_builtins:
            return _custom_builtins[name].obj is not obj
        return name in vars(builtins) and vars(builtins)[name] is not obj


def snake_case(name: str) -> str:
    """`SomeName` as `some_name`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _format_target(base: str, target: str) -> str:
    """The expression for a dotted name below `base`; parts that are no names use getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base
