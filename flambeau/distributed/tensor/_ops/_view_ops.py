"""Views: where each dimension of a tensor goes."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, Strategy
from flambeau.distributed.tensor._ops.utils import (
    R,
    along,
    normalize_dim,
    normalize_dims,
    register_rule,
)
from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset
from flambeau.distributed.tensor.placement_types import Placement, Shard, _StridedShard

# ---- permutations, dimensions of size one -------------------------------------------------------


@register_rule("permute")
def _permute(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    dims = [normalize_dim(d, ndim) for d in schema.argument(1, "dims")]
    return along(schema, [dims.index(d) for d in range(ndim)], partial=True)


@register_rule("t", "numpy_T", "adjoint")
def _transposed(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    return along(schema, list(range(ndim))[::-1], partial=True)


@register_rule("transpose", "swapaxes", "swapdims")
def _transpose(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    first, second = [normalize_dim(schema.argument(i, f"dim{i - 1}"), ndim) for i in (1, 2)]
    mapping: list[int | None] = list(range(ndim))
    mapping[first], mapping[second] = second, first
    return along(schema, mapping, partial=True)


@register_rule("unsqueeze")
def _unsqueeze(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    at = normalize_dim(schema.argument(1, "dim"), ndim + 1)
    return along(schema, [d + (d >= at) for d in range(ndim)], partial=True)


@register_rule("squeeze")
def _squeeze(schema: OpSchema) -> OutputSharding:
    """Only dimensions that are of size one in the whole go: a piece may have more of them."""
    from flambeau.distributed.tensor._sharding_prop import cheapest
    spec = schema.specs[0]
    dims = schema.argument(1, "dim")
    if dims != () and dims != []:
        dims = normalize_dims(dims, spec.ndim)
    gone = [d for d in dims if 0 <= d < spec.ndim and spec.shape[d] == 1]
    left = [d for d in range(spec.ndim) if d not in gone]
    plan = cheapest(schema, along(schema, [left.index(d) if d in left else None
                                           for d in range(spec.ndim)], partial=True))
    op = schema.op.overloadpacket.dims
    plan.run = lambda tensor, *rest, **options: op(tensor, gone)
    return plan


# ---- new shapes ---------------------------------------------------------------------------------

def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Which dimensions become which: runs of both shapes that have as many elements."""
    found = []
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = [], []
        a = b = 1
        if i < len(old):
            left.append(i)
            a, i = old[i], i + 1
        if j < len(new):
            right.append(j)
            b, j = new[j], j + 1
        while a != b:
            if (a < b and i < len(old)) or j >= len(new):
                left.append(i)
                a, i = a * old[i], i + 1
            else:
                right.append(j)
                b, j = b * new[j], j + 1
        found.append((left, right))
    return found


def _inferred(shape: Sequence[int], count: int) -> list[int]:
    known = prod(s for s in shape if s != -1)
    return [count // max(known, 1) if s == -1 else s for s in shape]


def _reshaped(schema: OpSchema, i: int, placement: Any, old: Sequence[int], new: Sequence[int],
              pieces: dict[int, int], strict: bool) -> Placement:
    """How a cut lies in the new shape, `pieces` being those of each dimension that earlier cuts
    have made; whole if it cannot."""
    count, dim = schema.mesh.size(i), placement.dim
    split, joined = next((g for g in _groups(old, new) if dim in g[0]), ([dim], list[int]()))
    left = [d for d in split if old[d] != 1 or d == dim]
    right = [d for d in joined if new[d] != 1]
    if old[dim] == 1 or not right:
        return R
    if isinstance(placement, _StridedShard):
        return placement if len(left) == len(right) == 1 and old[dim] == new[right[0]] else R
    before = prod(-(-old[d] // pieces[d]) for d in left if d < dim)
    if before == 1:
        first = right[0]
        if new[first] % count and len(right) > 1:
            if strict and len(left) == 1:
                raise RuntimeError(
                    f"Cannot unflatten unevenly sharded tensor: output dimension {first} (size "
                    f"{new[first]}) is not evenly divisible by mesh dimension {i} (size {count}). "
                    "Please redistribute the tensor before this operation.")
            return R
        uneven = old[dim] % count and len(left) > 1
        return R if uneven else Shard(first)
    if len(right) == 1 and old[dim] % count == 0:
        return _StridedShard(right[0], split_factor=before)
    return R


def _new_shape(schema: OpSchema, shape: Sequence[int], strict: bool) -> OutputSharding:
    from flambeau.distributed.tensor._sharding_prop import output_metas
    spec = schema.specs[0]
    new = _inferred(shape, prod(spec.shape))
    inputs: list[Placement] = []
    outputs: list[Placement] = []
    cut = dict.fromkeys(range(len(new)), 1)
    pieces = dict.fromkeys(range(spec.ndim), 1)
    for i, placement in enumerate(spec.placements):
        if not isinstance(placement, (Shard, _StridedShard)):
            inputs.append(placement), outputs.append(placement)
            continue
        found: Any = _reshaped(schema, i, placement, spec.shape, new, pieces, strict)
        if isinstance(found, Shard) and cut[found.dim] > 1 and new[found.dim] % (
                cut[found.dim] * schema.mesh.size(i)):
            found = R
        if not found.is_replicate():
            cut[found.dim] *= schema.mesh.size(i)
            pieces[placement.dim] *= schema.mesh.size(i)
        inputs.append(R if found.is_replicate() else placement)
        outputs.append(found)
    metas = output_metas(schema)
    local, _ = compute_local_shape_and_global_offset(new, schema.mesh, outputs)
    op = schema.op

    def run(tensor: Any, *rest: Any, **options: Any) -> Any:
        return op(tensor, list(local)) if tensor.numel() == prod(local) else tensor.reshape(local)
    return OutputSharding([tuple(inputs)], tuple(outputs), run=run, metas=metas)


@register_rule("view", "reshape", "_unsafe_view", "_reshape_alias")
def _view(schema: OpSchema) -> Any:
    if schema.op._overloadname == "dtype":
        from flambeau.distributed.tensor._ops._pointwise_ops import pointwise_strategies
        return pointwise_strategies(schema)
    name = "shape" if schema.name == "reshape" else "size"
    return _new_shape(schema, schema.argument(1, name), schema.name == "view")


@register_rule("unflatten")
def _unflatten(schema: OpSchema) -> OutputSharding:
    spec = schema.specs[0]
    at = normalize_dim(schema.argument(1, "dim"), spec.ndim)
    sizes = _inferred(schema.argument(2, "sizes"), spec.shape[at])
    plan = _new_shape(schema, [*spec.shape[:at], *sizes, *spec.shape[at + 1:]], True)
    local, _ = compute_local_shape_and_global_offset(
        plan.metas[0].shape, schema.mesh, plan.outputs)     # type: ignore
    plan.run = lambda tensor, *rest, **options: tensor.view(local)
    return plan


@register_rule("expand", "broadcast_to")
def _expand(schema: OpSchema) -> OutputSharding:
    from flambeau.distributed.tensor._sharding_prop import cheapest
    spec, sizes = schema.specs[0], list(schema.argument(1, "size"))
    shift = len(sizes) - spec.ndim
    new = [spec.shape[d - shift] if s == -1 else s for d, s in enumerate(sizes)]
    plan = cheapest(schema, along(schema, [
        d + shift if spec.shape[d] == new[d + shift] else None for d in range(spec.ndim)],
        partial=True))
    local, _ = compute_local_shape_and_global_offset(new, schema.mesh, plan.outputs)  # type: ignore
    op = schema.op
    plan.run = lambda tensor, *rest, **options: op(tensor, list(local))
    return plan


@register_rule("repeat", "tile")
def _repeat(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    times = list(schema.argument(1, "repeats"))
    shift = len(times) - ndim
    return along(schema, [d + shift if times[d + shift] == 1 else None for d in range(ndim)],
                 partial=True)


# ---- parts --------------------------------------------------------------------------------------

@register_rule("select")
def _select(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    at = normalize_dim(schema.argument(1, "dim"), ndim)
    return along(schema, [None if d == at else d - (d > at) for d in range(ndim)], partial=True)


@register_rule("slice", "narrow")
def _slice(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    at = normalize_dim(schema.argument(1, "dim", 0), spec.ndim)
    mapping: list[int | None] = list(range(spec.ndim))
    if schema.name == "narrow" or not _is_whole(schema, spec.shape[at]):
        mapping[at] = None
    return along(schema, mapping, partial=True)


def _is_whole(schema: OpSchema, size: int) -> bool:
    start, end, step = [schema.argument(i, n) for i, n in ((2, "start"), (3, "end"), (4, "step"))]
    return not start and (end is None or end >= size) and step in (None, 1)


@register_rule("split", "split_with_sizes", "chunk", "tensor_split")
def _split(schema: OpSchema) -> Any:
    from flambeau.distributed.tensor._sharding_prop import cheapest, output_metas
    spec = schema.specs[0]
    at = normalize_dim(schema.argument(2, "dim", 0), spec.ndim)
    metas = output_metas(schema)
    plan = cheapest(schema, along(schema, [None if d == at else d for d in range(spec.ndim)],
                                  partial=True))
    plan.metas = metas
    return plan


@register_rule("unbind")
def _unbind(schema: OpSchema) -> Any:
    from flambeau.distributed.tensor._sharding_prop import cheapest, output_metas
    spec = schema.specs[0]
    at = normalize_dim(schema.argument(1, "dim", 0), spec.ndim)
    if any(isinstance(p, (Shard, _StridedShard)) and p.dim == at for p in spec.placements):
        raise RuntimeError(f"Attempted to unbind along the sharded dimension {at}. ",
                           "It cannot be performed without redistribution, which is disallowed by "
                           "the current operator.")
    plan = cheapest(schema, along(schema, [None if d == at else d - (d > at)
                                           for d in range(spec.ndim)], partial=True))
    plan.metas = output_metas(schema)
    return plan


@register_rule("diagonal", "unfold")
def _two_dims(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    if schema.name == "unfold":
        at = normalize_dim(schema.argument(1, "dimension"), ndim)
        return along(schema, [None if d == at else d for d in range(ndim)], partial=True)
    gone = {normalize_dim(schema.argument(i, f"dim{i - 1}", i - 2), ndim) for i in (2, 3)}
    left = [d for d in range(ndim) if d not in gone]
    return along(schema, [left.index(d) if d in left else None for d in range(ndim)],
                 partial=True)
