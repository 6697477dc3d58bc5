"""What rules have in common."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._sharding_prop import register_rule, rules
from flambeau.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _NormPartial,
    _StridedShard,
)

R = Replicate()


def register_op_strategy(op: Any, schema_info: Any = None) -> Callable[[Any], Any]:
    """A decorator: the rule of one overload, or of several. It takes the call, an `OpSchema`, and
    gives strategies, pairs of the outputs' and the inputs' placements on one dimension of a mesh,
    or an `OutputSharding`."""
    def register(rule: Any) -> Any:
        for overload in op if isinstance(op, (list, tuple)) else [op]:
            rules[overload.name()] = rule
        return rule
    return register


def normalize_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the left."""
    return dim if dim >= 0 else dim + ndim


def normalize_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the left; all where None are given."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tuple(range(ndim))
    return tuple(normalize_dim(d, ndim)
                 for d in (dims if isinstance(dims, (list, tuple)) else [dims]))


def cut_dims(spec: DTensorSpec) -> list[int]:
    """The dimensions of a tensor that the mesh cuts, in order."""
    return sorted({p.dim for p in spec.placements if isinstance(p, Shard)})


def strided_cuts(spec: DTensorSpec) -> list[_StridedShard]:
    """The strided cuts of a tensor."""
    return list({p: None for p in spec.placements if isinstance(p, _StridedShard)})


def partials(specs: Iterable[DTensorSpec], linear: bool = True) -> list[Partial]:
    """The kinds of terms among the inputs; with `linear`, those that sums go through."""
    found = {p.reduce_op: Partial(p.reduce_op) for spec in specs for p in spec.placements
             if isinstance(p, Partial) and (not linear or (
                 type(p) is not _norm() and p.reduce_op in Partial.LINEAR_REDUCE_OPS))}
    return list(found.values())


def _norm() -> type:
    from flambeau.distributed.tensor.placement_types import _NormPartial
    return _NormPartial


def moved(placement: Placement, dim: int) -> Placement:
    """A cut along another dimension."""
    return Shard(dim) if isinstance(placement, Shard) else _StridedShard(
        dim, split_factor=placement.split_factor)       # type: ignore[attr-defined]


def along(schema: OpSchema, mapping: Sequence[int | None], outputs: int = 1, others: int = 0,
          partial: bool = False) -> list[Strategy]:
    """Strategies of an op on one tensor whose dimension d is `mapping[d]` of each output; None: it
    has to be whole. `others` inputs more are whole; `partial`: terms go through."""
    found: list[Strategy] = []
    rest = (R,) * others
    spec = schema.specs[0]
    for dim in cut_dims(spec):
        to = mapping[dim]
        if to is not None:
            found.append(((Shard(to),) * outputs, (Shard(dim), *rest)))
    for cut in strided_cuts(spec):
        to = mapping[cut.dim]
        if to is not None:
            found.append(((moved(cut, to),) * outputs, (cut, *rest)))
    if partial:
        found += [((p,) * outputs, (p, *rest)) for p in partials([spec])]
    return found


def except_dims(schema: OpSchema, dims: Iterable[int], outputs: int = 1, others: int = 0,
                partial: bool = False) -> list[Strategy]:
    """Strategies of an op that works along some dimensions and leaves the others as they are."""
    ndim = schema.specs[0].ndim
    whole = {normalize_dim(d, ndim) for d in dims}
    return along(schema, [None if d in whole else d for d in range(ndim)], outputs, others, partial)


# ---- of shapes and placements, for rules of others ----------------------------------------------

def as_list(x: Any) -> list[Any]:
    """A list as it is, anything else as the only entry of one."""
    return x if isinstance(x, list) else [x]


def prod(xs: Iterable[int]) -> int:
    """The product of numbers."""
    return math.prod(xs)


def is_tensor_dim_sharded(spec: DTensorSpec, dim: int) -> bool:
    """Is a dimension cut?"""
    return any(p.is_shard(dim) for p in spec.placements)


def is_tensor_partial(spec: DTensorSpec) -> bool:
    """Have processes terms of it?"""
    return any(p.is_partial() for p in spec.placements)


def _pieces_of(shape: Sequence[int], spec: DTensorSpec) -> list[int]:
    """Into how many pieces each dimension is cut."""
    found = [1] * len(shape)
    for i, placement in enumerate(spec.placements):
        if isinstance(placement, (Shard, _StridedShard)) and placement.dim < len(shape):
            found[placement.dim] *= spec.mesh.size(i)
    return found


def is_tensor_shardable(shape: Sequence[int], spec: DTensorSpec,
                        allow_unbacked_sharding: bool | None = None) -> bool:
    """Does each process get something of a tensor of this shape?"""
    return all(count == 1 or size >= count
               for size, count in zip(shape, _pieces_of(shape, spec)))


def is_tensor_evenly_shardable(shape: Sequence[int], spec: DTensorSpec) -> bool:
    """Do all processes get pieces of one size?"""
    return all(size % count == 0 for size, count in zip(shape, _pieces_of(shape, spec)))


def is_tensor_evenly_shardable_on_dim(shape: Sequence[int], spec: DTensorSpec, dim: int) -> bool:
    """Do they, along one dimension?"""
    dim = normalize_dim(dim, len(shape))
    return shape[dim] % _pieces_of(shape, spec)[dim] == 0


def infer_broadcast_dims_map(common_shape: Sequence[int], input_shape: Sequence[int]) -> list[int]:
    """For each dimension of the common shape, that of the input; -1 where the input is repeated.

    >>> infer_broadcast_dims_map((4, 3, 2), (3, 1))
    [-1, 0, -1]
    """
    shift = len(common_shape) - len(input_shape)
    return [d - shift if d >= shift and input_shape[d - shift] == size else -1
            for d, size in enumerate(common_shape)]


def map_placements_after_broadcast(placements: tuple[Placement, ...], shape: Sequence[int],
                                   broadcast_dims_map: list[int],
                                   partial_to_replicate: bool = False) -> tuple[Placement, ...]:
    """How an input lies whose result, of this shape, lies as `placements` say."""
    found: list[Placement] = []
    for placement in placements:
        if isinstance(placement, (Shard, _StridedShard)):
            at = broadcast_dims_map[normalize_dim(placement.dim, len(shape))]
            found.append(moved(placement, at) if at >= 0 else R)
        else:
            found.append(R if placement.is_partial() and partial_to_replicate else placement)
    return tuple(found)


def shift_shard_dims_after_insert(placements: Sequence[Placement], insert_dim: int = 0
                                  ) -> list[Placement]:
    """The placements once a dimension has been put in."""
    return [moved(p, p.dim + 1) if isinstance(p, (Shard, _StridedShard)) and p.dim >= insert_dim
            else p for p in placements]


def shift_shard_dims_after_remove(placements: Sequence[Placement], remove_dim: int = 0
                                  ) -> list[Placement]:
    """The placements once a dimension has been taken away."""
    return [moved(p, p.dim - 1) if isinstance(p, (Shard, _StridedShard)) and p.dim > remove_dim
            else p for p in placements]


__all__ = ["R", "along", "cut_dims", "except_dims", "moved", "normalize_dim", "normalize_dims",
           "partials", "register_op_strategy", "register_rule", "strided_cuts"]


# ---- reductions along cuts -----------------------------------------------------------------------

_TERMS = {"sum": "sum", "nansum": "sum", "mean": "avg", "max": "max", "amax": "max", "min": "min",
          "amin": "min", "prod": "product", "all": "product", "any": "sum"}


def reduced_term(kind: str, order: float = 2) -> Partial:
    """The terms that a reduction along a cut gives."""
    return _NormPartial(norm_type=order) if kind == "norm" else Partial(_TERMS[kind])


def pieces(spec: DTensorSpec, dim: int) -> int:
    """Into how many pieces a dimension is cut, or may be: terms may be summed into pieces."""
    count = 1
    for i, p in enumerate(spec.placements):
        if p.is_partial() or (isinstance(p, Shard) and p.dim == dim):
            count *= spec.mesh.size(i)
    return count if count > 1 else max(spec.mesh.shape)


def evenly_cut(spec: DTensorSpec, dim: int) -> bool:
    """Have all processes pieces of one size?"""
    return spec.shape[dim] % pieces(spec, dim) == 0
