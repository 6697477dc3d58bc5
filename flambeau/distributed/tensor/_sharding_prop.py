"""How a call on distributed tensors is carried out: which placements it needs, which it gives.

An op has a *rule*. Most rules name *strategies*: what may happen on one dimension of a mesh, as a
placement of each output and each input. Always allowed is that all are replicated. For each
dimension of the mesh the strategy is taken to which the inputs can be brought at the least cost,
and of those that cost the same the one that changes least.
An op without a rule runs on whole tensors.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import flambeau
from flambeau._support.scopes import within
from flambeau._support.symbolic_names import Tag
from flambeau.core import modes
from flambeau.distributed.tensor._collective_utils import (
    MeshTopoInfo,
    placement_cost,
    spec_to_bytes,
)
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, Strategy
from flambeau.distributed.tensor.placement_types import Placement, Replicate, Shard
from flambeau.utils._pytree import tree_leaves

Rule = Callable[[OpSchema], Any]
rules: dict[str, Rule] = {}                 # by the name of the op, or of one overload


def register_rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator: the rule of these ops. It gives strategies, or an `OutputSharding`."""
    def register(rule: Rule) -> Rule:
        for name in names:
            rules[name] = rule
        return rule
    return register


def rule_of(schema: OpSchema) -> Rule | None:
    """The rule of a call."""
    from flambeau.distributed.tensor import _ops
    op = schema.op
    found = rules.get(f"{op.name()}") or rules.get(schema.name)
    if found is None and Tag.pointwise in op.tags:
        return _ops.pointwise_rule
    return found


# ---- choosing -----------------------------------------------------------------------------------

def cheapest(schema: OpSchema, strategies: Iterable[Strategy], outputs: int = 1) -> OutputSharding:
    """For each dimension of the mesh the strategy that costs least."""
    specs, mesh = schema.specs, schema.mesh
    whole: Strategy = ((Replicate(),) * outputs, (Replicate(),) * len(specs))
    found = [*strategies, whole]
    topo = MeshTopoInfo.build_from_mesh(mesh)
    sizes = [spec_to_bytes(s) / s.num_shards / 2 ** 30 for s in specs]
    chosen = []
    for i in range(mesh.ndim):
        allowed = [s for s in found if _allowed(schema, i, s)]
        if not allowed:
            raise RuntimeError(
                f"{schema.op}: in-place operations that require placement changes are not "
                f"supported. The input has placement {specs[0].placements}, but no valid strategy "
                "preserves this placement. Please use the out-of-place version of this operation "
                "instead.")
        chosen.append(min(allowed, key=lambda strategy, i=i: (  # type: ignore[misc]
            sum(_cost(spec, i, wanted, topo, size)
                for spec, wanted, size in zip(specs, strategy[1], sizes)),
            sum(wanted != spec.placements[i] for spec, wanted in zip(specs, strategy[1])))))
    inputs = [tuple(_or_replicate(chosen[i][1][at]) for i in range(mesh.ndim))
              for at in range(len(specs))]
    results = [None if any(c[0][at] is None for c in chosen) else
               tuple(c[0][at] for c in chosen) for at in range(len(chosen[0][0]))]
    return OutputSharding(inputs, results if len(results) > 1 else results[0])


def _or_replicate(placement: Placement | None) -> Placement:
    return Replicate() if placement is None else placement


def _allowed(schema: OpSchema, mesh_dim: int, strategy: Strategy) -> bool:
    """Is a strategy one that a dimension of the mesh can follow?"""
    outputs, inputs = strategy
    if schema.is_inplace_op():
        own = schema.specs[0].placements[mesh_dim]
        if inputs[0] != own or outputs[0] != own:
            return False
    return all(_can_become(spec, mesh_dim, wanted) for spec, wanted in zip(schema.specs, inputs))


def _can_become(spec: DTensorSpec, mesh_dim: int, wanted: Placement | None) -> bool:
    """A cut that would have to be made before others of the same dimension is not chosen; nor
    one of a dimension that is too short, unless it is there already."""
    current = spec.placements[mesh_dim]
    if wanted is None or wanted == current or not isinstance(wanted, Shard):
        return True
    if spec.shape[wanted.dim] < spec.mesh.size(mesh_dim):
        return False
    return not any(isinstance(p, Shard) and p.dim == wanted.dim
                   for p in spec.placements[mesh_dim + 1:])


def _cost(spec: DTensorSpec, mesh_dim: int, wanted: Placement | None, topo: MeshTopoInfo,
          size: float) -> float:
    if wanted is None:
        return 0.0
    return placement_cost(spec.placements[mesh_dim], wanted, topo, mesh_dim, size)[0]


def replicated(schema: OpSchema) -> OutputSharding:
    """Carry a call out on whole tensors."""
    return cheapest(schema, ())


# ---- what the outputs are like ------------------------------------------------------------------

def output_metas(schema: OpSchema) -> list[TensorMeta | None]:
    """Shapes, strides and types of the whole outputs, found on tensors without values; of which
    dispatch modes see nothing."""
    return within(modes.levels, (), _output_metas, schema)


def _output_metas(schema: OpSchema) -> list[TensorMeta | None]:
    tensors = [flambeau.empty_strided(tuple(s.shape), tuple(s.stride), dtype=s.tensor_meta.dtype,
                                      device="meta") for s in schema.specs]
    args, kwargs = schema.with_tensors(tensors)
    with flambeau.no_grad():
        found = schema.op(*args, **kwargs)
    return [TensorMeta(leaf.shape, leaf.stride(), leaf.dtype)
            if isinstance(leaf, flambeau.Tensor) else None for leaf in _leaves(found)]


def _leaves(found: Any) -> list[Any]:
    return tree_leaves(found, is_leaf=lambda value: value is None)


class ShardingPropagator:
    """Finds how calls are carried out, and remembers it."""

    def __init__(self) -> None:
        self._known: dict[Any, OutputSharding] = {}

    def propagate(self, schema: OpSchema) -> OutputSharding:
        """How a call is carried out."""
        key = schema.key()
        found = self._known.get(key) if key is not None else None
        if found is None:
            found = self.propagate_op_sharding_non_cached(schema)
            if key is not None:
                if len(self._known) > 4096:
                    self._known.clear()
                self._known[key] = found
        return found

    propagate_op_sharding = propagate

    def propagate_op_sharding_non_cached(self, schema: OpSchema) -> OutputSharding:
        """How a call is carried out, not looked up."""
        rule = rule_of(schema)
        found = replicated(schema) if rule is None else rule(schema)
        if not isinstance(found, OutputSharding):
            strategies = list(found)
            outputs = len(strategies[0][0]) if strategies else 1
            found = cheapest(schema, strategies, outputs)
        if found.metas is None and not schema.is_inplace_op() and self._cut(found):
            found.metas = output_metas(schema)
        return found

    @staticmethod
    def _cut(found: OutputSharding) -> bool:
        """Is an output cut, so that its pieces do not say what the whole is like?"""
        every = found.outputs if isinstance(found.outputs, list) else [found.outputs]
        return any(p is not None and any(not (q.is_replicate() or q.is_partial()) for q in p)
                   for p in every)

    def register_op_strategy(self, op_overload: Any, strategy_func: Any, schema_info: Any = None
                             ) -> None:
        """Give an op a rule."""
        rules[op_overload.name()] = strategy_func
        self._known.clear()
