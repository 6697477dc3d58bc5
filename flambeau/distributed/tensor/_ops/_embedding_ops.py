"""Embeddings. A table whose rows are cut gives terms: each process has the rows that it knows."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, Strategy
from flambeau.distributed.tensor._ops.utils import R, cut_dims, register_rule
from flambeau.distributed.tensor.placement_types import Partial, Shard, _MaskPartial


@register_rule("embedding")
def _embedding(schema: OpSchema) -> OutputSharding:
    from flambeau.distributed.tensor._sharding_prop import cheapest
    weight, indices = schema.specs[:2]
    last = indices.ndim
    masked = _MaskPartial(offset_shape=weight.shape, offset_dim=0)
    found: list[Strategy] = [((Shard(last),), (Shard(1), R)), ((masked,), (Shard(0), R))]
    found += [((Shard(d),), (R, Shard(d))) for d in cut_dims(indices)]
    plan = cheapest(schema, found)
    rows = [i for i, p in enumerate(plan.inputs[0]) if p == Shard(0)]
    if rows:
        plan.run = _of_known_rows(schema, rows)
    return plan


def _of_known_rows(schema: OpSchema, mesh_dims: list[int]) -> Any:
    """The embedding of the rows that this process has, zeros for the others."""
    from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset
    placements = [Shard(0) if i in mesh_dims else R for i in range(schema.mesh.ndim)]
    shape, offset = compute_local_shape_and_global_offset(schema.specs[0].shape, schema.mesh,
                                                          placements)
    op = schema.op

    def run(weight: Any, indices: Any, *rest: Any, **options: Any) -> Any:
        places = indices - offset[0]
        known = (places >= 0) & (places < shape[0])
        if shape[0] == 0:
            return weight.new_zeros((*indices.shape, weight.shape[1]))
        found = op(weight, flambeau.where(known, places, 0), *rest, **options)
        return found * known.unsqueeze(-1)
    return run


@register_rule("embedding_dense_backward")
def _embedding_backward(schema: OpSchema) -> list[Strategy]:
    grad, indices = schema.specs[:2]
    found: list[Strategy] = [((Shard(1),), (Shard(grad.ndim - 1), R))]
    cuts = {*cut_dims(indices), *[d for d in cut_dims(grad) if d < indices.ndim]}
    found += [((Partial(),), (Shard(d), Shard(d))) for d in sorted(cuts)]
    return [*found, ((Partial(),), (Partial(), R))]
