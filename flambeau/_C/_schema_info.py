"""What a schema says of memory, given some of the arguments of a call: `torch._C._SchemaInfo`."""
from __future__ import annotations

from enum import Enum
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.utils._pytree import tree_leaves


class SchemaArgType(Enum):
    """Is an argument one that goes in, or one that comes out?"""

    input = 0
    output = 1

    def __str__(self) -> str:
        return f"_SchemaArgType.{self.name}"

    def __int__(self) -> int:
        return self.value


class SchemaArgument:
    """An argument or a result of a schema, by its place."""

    def __init__(self, type: SchemaArgType, index: int) -> None:
        self.type, self.index = type, index


# Ops that write to running statistics unless this argument is False.
_STATISTICS = {"aten::batch_norm": "training", "aten::instance_norm": "use_input_stats",
               "aten::cudnn_batch_norm": "training", "aten::miopen_batch_norm": "training",
               "aten::native_batch_norm": "training", "aten::_batch_norm_impl_index": "training"}


class SchemaInfo:
    """What may be written to, and what may share memory with what.

    >>> info = SchemaInfo(flambeau.ops.aten.sub_.Tensor._schema)
    >>> info.is_mutable("self"), info.is_mutable("other")
    (True, False)
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._values: dict[str, Any] = {}

    def add_argument_value(self, name: str, value: Any) -> None:
        """Let this be the value of an argument."""
        self._values[name] = value

    def add_argument_values(self, values: dict[str, Any]) -> None:
        """Let these be the values of arguments."""
        for name, value in values.items():
            if value is not None:
                self.add_argument_value(name, value)

    def has_argument(self, name: str) -> bool:
        """Has the schema an argument of this name?"""
        return any(a.name == name for a in self._schema.arguments)

    def is_mutable(self, argument: str | SchemaArgument | None = None) -> bool:
        """May this argument be written to (any of them, without one)?"""
        if argument is None:
            return any(self.is_mutable(SchemaArgument(SchemaArgType.input, i))
                       for i in range(len(self._schema.arguments)))
        if isinstance(argument, str):
            places = [i for i, a in enumerate(self._schema.arguments) if a.name == argument]
            if not places:
                raise RuntimeError(f"Schema has no argument named {argument}")
            argument = SchemaArgument(SchemaArgType.input, places[0])
        found = self._found(argument)
        if argument.type is SchemaArgType.output:
            return bool(found.alias_info and found.alias_info.is_write)
        switch = _STATISTICS.get(self._schema.name)
        if switch is not None and found.name in ("running_mean", "running_var"):
            return bool(self._values.get(switch, True))
        if found.alias_info and found.alias_info.is_write:
            return True
        return any(self._share(argument, SchemaArgument(SchemaArgType.input, i))
                   for i, a in enumerate(self._schema.arguments)
                   if a.alias_info and a.alias_info.is_write)

    def may_alias(self, lhs: SchemaArgument, rhs: SchemaArgument) -> bool:
        """May these be in the same memory?"""
        one, other = self._found(lhs), self._found(rhs)
        if _is_list(one) or _is_list(other):
            return False
        return self._labels_meet(lhs, rhs)

    def may_contain_alias(self, lhs: SchemaArgument, rhs: SchemaArgument,
                          bidirectional: bool = True) -> bool:
        """May these, or what is in them, be in the same memory?"""
        return self._labels_meet(lhs, rhs)

    def _found(self, argument: SchemaArgument) -> Any:
        inputs = argument.type is SchemaArgType.input
        given = self._schema.arguments if inputs else self._schema.returns
        if argument.index >= len(given):
            raise RuntimeError("Invalid index for schema.")
        return given[argument.index]

    def _labels(self, argument: SchemaArgument) -> set[str]:
        known = self._found(argument).alias_info
        found = set(known.before_set) | set(known.after_set) if known else set()
        if argument.type is SchemaArgType.input:        # those of what it shares memory with
            for i, other in enumerate(self._schema.arguments):
                there = SchemaArgument(SchemaArgType.input, i)
                if other.alias_info and i != argument.index and self._share(argument, there):
                    found |= set(other.alias_info.before_set) | set(other.alias_info.after_set)
        return found

    def _labels_meet(self, lhs: SchemaArgument, rhs: SchemaArgument) -> bool:
        same = lhs.type is rhs.type and lhs.index == rhs.index
        return same or bool(self._labels(lhs) & self._labels(rhs)) or self._share(lhs, rhs)

    def _share(self, lhs: SchemaArgument, rhs: SchemaArgument) -> bool:
        """Do the values of two arguments lie in the same memory?"""
        if SchemaArgType.output in (lhs.type, rhs.type):
            return False
        one, other = [self._values.get(self._found(each).name) for each in (lhs, rhs)]
        places = _places(one)
        return bool(places & _places(other))


def _is_list(argument: Any) -> bool:
    return str(argument.type).startswith("List[") or "[]" in str(argument.type)


def _places(value: Any) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in tree_leaves(value)
            if isinstance(t, Tensor) and t.layout is flambeau.strided
            and t.device.type == "cpu"} - {0}


_SchemaInfo, _SchemaArgument, _SchemaArgType = SchemaInfo, SchemaArgument, SchemaArgType
