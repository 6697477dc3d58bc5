"""`register_sharding`: rules of the user's for ops on distributed tensors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flambeau._ops import OpOverload
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._ops.single_dim_strategy import registers_strategies
from flambeau.utils._pytree import tree_leaves

__all__ = ["register_sharding"]


def register_sharding(op: OpOverload | list[OpOverload]) -> Callable[[Any], Any]:
    """A decorator: how an op may be carried out along one dimension of a mesh.

    The function is called as the op is, with a `DTensorSpec` for each tensor, and gives pairs:
    the placements of all outputs, and those of all inputs, None for what is no tensor. Of these
    the one is taken that costs least.

    >>> from flambeau.distributed.tensor import Replicate, Shard
    >>> @register_sharding(flambeau.ops.aten._softmax.default)
    ... def softmax(x, dim, half_to_float):
    ...     others = [d for d in range(x.ndim) if d != dim % x.ndim]
    ...     return [([Shard(d)], [Shard(d), None, None]) for d in others]
    """
    return registers_strategies(op, _strategies)


def _strategies(schema: OpSchema, custom_sharding_fn: Any) -> list[Strategy]:
    found = []
    leaves = tree_leaves((schema.args_schema, schema.kwargs_schema),
                         is_leaf=lambda value: value is None)
    tensors = [isinstance(leaf, DTensorSpec) for leaf in leaves]
    for outputs, inputs in custom_sharding_fn(*schema.args_schema, **schema.kwargs_schema):
        found.append((tuple(outputs), _of_tensors(inputs, tensors, schema)))
    return found  # type: ignore[return-value]


def _of_tensors(inputs: Sequence[Any], tensors: list[bool], schema: OpSchema) -> tuple[Any, ...]:
    """The placements of tensors among those of all arguments."""
    if len(inputs) >= len(tensors):
        return tuple(p for p, is_tensor in zip(inputs, tensors) if is_tensor)
    given = tuple(p for p in inputs if p is not None)
    if len(given) != len(schema.specs):
        raise ValueError(f"{schema.op} has {len(schema.specs)} tensors, but placements of "
                         f"{len(given)} were given: {list(inputs)}")
    return given
