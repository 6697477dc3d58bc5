"""Random numbers: each process draws those of its piece."""
from __future__ import annotations

from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._ops.utils import cut_dims, register_rule, strided_cuts
from flambeau.distributed.tensor.placement_types import Shard


@register_rule("normal", "uniform", "bernoulli", "exponential", "random", "cauchy", "geometric",
               "log_normal")
def _drawn(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    return [((cut,), (cut,) * len(schema.specs))
            for cut in [*map(Shard, cut_dims(spec)), *strided_cuts(spec)]]
