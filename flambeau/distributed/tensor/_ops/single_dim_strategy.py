"""Rules of ops for one dimension of a mesh, with placeholders for pieces of any kind."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flambeau._ops import OpOverload
from flambeau.distributed.tensor._api import DTensor
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
from flambeau.distributed.tensor._op_schema import OpSchema, RuntimeSchemaInfo, Strategy
from flambeau.distributed.tensor.placement_types import Placement, Replicate, Shard, _StridedShard
from flambeau.utils._pytree import tree_map_only


class _ShardingPlaceholder:
    """Pieces along a dimension, of whichever kind the tensors at hand have."""

    def __init__(self, dim: int):
        self.dim = dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ShardingPlaceholder) and self.dim == other.dim

    def __hash__(self) -> int:
        return hash(("placeholder", self.dim))

    def __repr__(self) -> str:
        return f"_ShardingPlaceholder(dim={self.dim})"


def register_single_dim_strategy(
        op: OpOverload | list[OpOverload], schema_info: RuntimeSchemaInfo | None = None,
        allow_unbacked_sharding: bool | None = None, allow_uneven_sharding: bool = False,
        different_mesh_args: list[int] | None = None) -> Callable[[Any], Any]:
    """A decorator: how an op may be carried out along one dimension of a mesh.

    The function is called with the op, its arguments and its keyword arguments, tensors given by
    what is known of them (`shape`, `stride`, `dtype`); it gives lists of placements: those of the
    outputs, then those of the tensors. That all are replicated need not be said.

    >>> from flambeau.library import custom_op
    >>> @custom_op("example::twice", mutates_args=())
    ... def twice(x: flambeau.Tensor) -> flambeau.Tensor:
    ...     return x * 2
    >>> @register_single_dim_strategy(flambeau.ops.example.twice.default)
    ... def rows(op, args, kwargs):
    ...     return [[_ShardingPlaceholder(d)] * 2 for d in range(len(args[0].shape))]
    """
    return registers_strategies(op, _strategies)


def registers_strategies(op: OpOverload | list[OpOverload],
                         strategies: Callable[[OpSchema, Any], list[Strategy]]
                         ) -> Callable[[Any], Any]:
    """A decorator: `strategies` makes the rule of the ops out of a call and the function."""
    def register(function: Any) -> Any:
        for overload in op if isinstance(op, list) else [op]:
            DTensor._op_dispatcher.sharding_propagator.register_op_strategy(
                overload, lambda schema: strategies(schema, function))
        return function
    return register


def _strategies(schema: OpSchema, function: Callable[..., Any]) -> list[Strategy]:
    args, kwargs = tree_map_only(DTensorSpec, lambda spec: spec.tensor_meta,
                                 (schema.args_schema, schema.kwargs_schema))
    rows = [list(row) for row in function(schema.op, args, kwargs)]
    count = len(schema.specs)
    if rows:
        rows.append([Replicate()] * len(rows[0]))
    found: list[Strategy] = []
    for row in rows:
        for filled in _fill_single_dim_strategy_placeholders(_placements_of(schema), [row]):
            outputs = len(filled) - count
            found.append((tuple(filled[:outputs]), tuple(filled[outputs:])))
    return found


def _placements_of(schema: OpSchema) -> set[Placement]:
    return {placement for spec in schema.specs for placement in spec.placements}


def _fill_single_dim_strategy_placeholders(
        unique_input_placements: set[Placement], single_dim_strategies_with_placeholders: Any
        ) -> list[list[Placement | None]]:
    """The lists with pieces of each kind that there is in the place of the placeholders."""
    kinds: dict[Any, Callable[[int], Placement]] = {"plain": Shard}
    for one in unique_input_placements:
        if isinstance(one, _StridedShard):
            factor = one.split_factor
            kinds[factor] = functools.partial(_StridedShard, split_factor=factor)
    found: list[list[Placement | None]] = []
    for row in single_dim_strategies_with_placeholders:
        has_some = any(isinstance(entry, _ShardingPlaceholder) for entry in row)
        for make in kinds.values() if has_some else [Shard]:
            found.append([make(entry.dim) if isinstance(entry, _ShardingPlaceholder) else entry
                          for entry in row])
    return found
