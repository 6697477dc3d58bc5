"""A mode that checks whether ops do what their schemas say: what they write to, what they alias."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor
from flambeau._C._schema_info import SchemaArgType, SchemaArgument, SchemaInfo
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_leaves, tree_map


class Mutation(NamedTuple):
    """An op that wrote to an argument."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """An op whose output shares memory with an argument."""

    op_name: str
    arg_name: str
    output_number: str


def is_iterable_of_tensors(iterable: Iterable[Any]) -> bool:
    """Is it several tensors, and nothing else?"""
    if isinstance(iterable, (Tensor, str)):
        return False
    try:
        values = list(iterable)
    except TypeError:
        return False
    return bool(values) and all(isinstance(value, Tensor) for value in values)


def clone_inputs(args: Iterable[Any]) -> list[Any]:
    """The arguments, with copies of tensors."""
    return [tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, arg)
            for arg in args]


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


def _share(one: Any, other: Any) -> bool:
    """Does a tensor of the one lie in the memory of a tensor of the other?"""
    places = {place for t in _tensors(one) if (place := _place(t)) is not None}
    return any(_place(t) in places for t in _tensors(other))


def _place(tensor: Tensor) -> int | None:
    if tensor.layout is not flambeau.strided or tensor.device.type != "cpu":
        return None
    return tensor.untyped_storage().data_ptr() or None


def _geometry(value: Any) -> list[Any]:
    return [(t.shape, t.stride(), t.storage_offset()) if t.layout is flambeau.strided else t.shape
            for t in _tensors(value)]


def _is_written(before: Any, after: Any, geometry: list[Any]) -> bool:
    return _geometry(after) != geometry or any(
        not flambeau.allclose(old, new, equal_nan=True)
        for old, new in zip(_tensors(before), _tensors(after)))


class SchemaCheckMode(TorchDispatchMode):
    """Raises where an op writes to an argument, or gives what shares memory with one, though its
    schema does not say so. `ops`, `mutated` and `aliasing` say what was seen.

    >>> mode = SchemaCheckMode()
    >>> with mode:
    ...     _ = flambeau.ones(2).add_(1)
    >>> mode.ops
    ['aten::ones', 'aten::add_']
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        """Forget the ops that were seen."""
        self.ops.clear()

    def display_ops(self) -> None:
        """Print the ops that were seen."""
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        schema = func._schema
        self.ops.append(schema.name)
        given = {a.name: value for a, value in zip(schema.arguments, args)} | kwargs
        copies = dict(zip(given, clone_inputs(given.values())))
        shapes = {name: _geometry(value) for name, value in given.items()}
        outputs = func(*args, **kwargs)
        info = SchemaInfo(schema)
        info.add_argument_values(given)
        several = len(schema.returns) > 1
        parts = outputs if several else (outputs,)
        for i, argument in enumerate(schema.arguments):
            if argument.name in given and _tensors(given[argument.name]):
                name = argument.name
                written = _is_written(copies[name], given[name], shapes[name])
                self._check(info, schema.name, i, name, given[name], written, parts)
        for i, one in enumerate(parts):
            for j, other in enumerate(parts[i + 1:], i + 1):
                if _share(one, other) and not info.may_contain_alias(
                        SchemaArgument(SchemaArgType.output, i),
                        SchemaArgument(SchemaArgType.output, j)):
                    raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")
        return outputs

    def _check(self, info: SchemaInfo, op: str, place: int, name: str, value: Any, written: bool,
               parts: Any) -> None:
        shown = "input" if name == "self" else name
        argument = SchemaArgument(SchemaArgType.input, place)
        for j, part in enumerate(parts):
            if _share(value, part) and "unsafe_" not in op:     # such promise what is not so
                if not info.may_contain_alias(SchemaArgument(SchemaArgType.output, j), argument):
                    raise RuntimeError(f"Argument {shown} is not defined to alias output but was "
                                       "aliasing")
                self.aliasing.append(Aliasing(op, shown, f"output_{j}"))
        if written:
            if not info.is_mutable(argument):
                raise RuntimeError(f"Argument {shown} is not defined as mutable but was mutated")
            self.mutated.append(Mutation(op, shown))
