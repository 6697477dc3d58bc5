"""New tensors like others, joining, indexing, scattering."""
from __future__ import annotations

from typing import Any

from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, Strategy
from flambeau.distributed.tensor._ops.utils import (
    R,
    along,
    cut_dims,
    except_dims,
    normalize_dim,
    normalize_dims,
    partials,
    register_rule,
    strided_cuts,
)
from flambeau.distributed.tensor._utils import compute_local_shape_and_global_offset
from flambeau.distributed.tensor.placement_types import Placement, Replicate, Shard

# ---- tensors like others ------------------------------------------------------------------------


def _keeping_cuts(schema: OpSchema) -> OutputSharding:
    """What is new lies as its model does; where that is a sum of terms, it is whole. Nothing of the
    model is needed but its shape."""
    spec = schema.specs[0]
    outputs = tuple(Replicate() if p.is_partial() else p for p in spec.placements)
    return OutputSharding([spec.placements, *[(R,) * schema.mesh.ndim] * (len(schema.specs) - 1)],
                          outputs)


@register_rule("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like",
               "randint_like", "bernoulli")
def _like(schema: OpSchema) -> Any:
    if schema.name == "bernoulli" or len(schema.specs) > 1:
        return except_dims(schema, (), others=len(schema.specs) - 1)
    return _keeping_cuts(schema)


@register_rule("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided")
def _new(schema: OpSchema) -> OutputSharding:
    """A tensor of the same shape lies as its model does, any other is whole."""
    spec, size = schema.specs[0], list(schema.argument(1, "size"))
    same = tuple(size) == tuple(spec.shape)
    plan = _keeping_cuts(schema)
    if not same:
        plan.outputs = (R,) * schema.mesh.ndim
        return plan
    local, _ = compute_local_shape_and_global_offset(size, schema.mesh,
                                                     plan.outputs)      # type: ignore
    op = schema.op
    strided = schema.name == "new_empty_strided"

    def run(tensor: Any, size: Any, *rest: Any, **options: Any) -> Any:
        return tensor.new_empty(local) if strided else op(tensor, list(local), *rest, **options)
    plan.run = run
    return plan


# ---- joining ------------------------------------------------------------------------------------

def _joined(schema: OpSchema, mapping: Any, whole: int | None) -> list[Strategy]:
    count = len(schema.specs)
    dims = sorted({d for spec in schema.specs for d in cut_dims(spec) if d != whole})
    found: list[Strategy] = [((Shard(mapping(d)),), (Shard(d),) * count) for d in dims]
    return found + [((p,), (p,) * count) for p in partials(schema.specs)]


@register_rule("cat")
def _cat(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    at = normalize_dim(schema.argument(1, "dim", 0), ndim)
    return _joined(schema, lambda d: d, at)


@register_rule("stack")
def _stack(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    at = normalize_dim(schema.argument(1, "dim", 0), ndim + 1)
    return _joined(schema, lambda d: d + (d >= at), None)


# ---- along one dimension ------------------------------------------------------------------------

@register_rule("cumsum", "cumprod", "logcumsumexp", "diff", "view_as_complex")
def _along_one(schema: OpSchema) -> list[Strategy]:
    at = -1 if schema.name == "view_as_complex" else schema.argument(
        2 if schema.name == "diff" else 1, "dim", -1)
    return except_dims(schema, [at], partial=schema.name in ("cumsum", "view_as_complex"))


@register_rule("renorm")
def _renorm(schema: OpSchema) -> list[Strategy]:
    """Each index of that dimension has a norm of its own."""
    at = normalize_dim(schema.argument(2, "dim"), schema.specs[0].ndim)
    return [((Shard(at),), (Shard(at),))]


@register_rule("flip", "roll")
def _moved_along(schema: OpSchema) -> list[Strategy]:
    dims = schema.argument(2 if schema.name == "roll" else 1, "dims") or range(
        schema.specs[0].ndim)
    return except_dims(schema, dims if not isinstance(dims, int) else [dims], partial=True)


@register_rule("tril", "triu")
def _triangle(schema: OpSchema) -> list[Strategy]:
    return except_dims(schema, (-2, -1), partial=True)


@register_rule("constant_pad_nd")
def _padded(schema: OpSchema) -> list[Strategy]:
    ndim, pads = schema.specs[0].ndim, schema.argument(1, "pad")
    dims = [ndim - 1 - i // 2 for i, n in enumerate(pads) if n]
    zero = not schema.argument(2, "value", 0)
    return except_dims(schema, dims, partial=zero)


@register_rule("sort", "topk", "kthvalue", "mode", "median", "nanmedian", "cummax", "cummin")
def _values_and_places(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    by_place = {"sort": 1, "topk": 2, "kthvalue": 2, "mode": 1, "median": 1, "nanmedian": 1,
                "cummax": 1, "cummin": 1}
    if schema.name in ("median", "nanmedian") and "dim" not in schema.op._overloadname:
        return []
    at = schema.argument(by_place[schema.name], "dim", -1)
    if isinstance(at, bool) or "stable" in schema.op._overloadname:
        at = schema.argument(2, "dim", -1)
    at = normalize_dim(at, ndim)
    keeps = schema.name in ("sort", "topk", "cummax", "cummin") or bool(
        schema.argument(by_place[schema.name] + 1, "keepdim", False))
    return along(schema, [None if d == at else d - (d > at and not keeps) for d in range(ndim)],
                 outputs=2)


@register_rule("argsort")
def _argsort(schema: OpSchema) -> list[Strategy]:
    return except_dims(schema, [schema.argument(1, "dim", -1)])


# ---- indexing -----------------------------------------------------------------------------------

@register_rule("index_select")
def _index_select(schema: OpSchema) -> list[Strategy]:
    return except_dims(schema, [schema.argument(1, "dim")], others=1, partial=True)


@register_rule("index_add", "index_copy", "index_fill")
def _index_written(schema: OpSchema) -> list[Strategy]:
    """Cuts of the dimensions that are not indexed, of the source too if that is not a number."""
    spec, _, *sources = schema.specs
    at = normalize_dim(schema.argument(1, "dim"), spec.ndim)
    return [((Shard(d),), (Shard(d), R, *[Shard(d) if s.ndim > d else R for s in sources]))
            for d in cut_dims(spec) if d != at]


@register_rule("gather", "scatter", "scatter_add", "scatter_reduce")
def _gather(schema: OpSchema) -> list[Strategy]:
    """Cuts of dimensions that are as long in all tensors and not indexed."""
    specs = schema.specs
    at = normalize_dim(schema.argument(1, "dim"), specs[0].ndim)
    dims = sorted({d for s in specs for d in cut_dims(s) if d != at
                   and all(o.ndim > d and o.shape[d] == s.shape[d] for o in specs)})
    found: list[Strategy] = [((Shard(d),), (Shard(d),) * len(specs)) for d in dims]
    if schema.name == "gather":
        found += [((p,), (p, R)) for p in partials(specs[:1])]
    return found


def _indexed(schema: OpSchema) -> tuple[list[int], dict[int, int]]:
    """The dimensions that are indexed, and where the others go."""
    spec, indices = schema.specs[0], schema.argument(1, "indices")
    dims = [d for d, index in enumerate(indices) if index is not None]
    shape = max((len(i.shape) for i in indices if i is not None), default=0)
    together = dims == list(range(dims[0], dims[-1] + 1)) if dims else True
    start = dims[0] if dims and together else 0
    left = [d for d in range(spec.ndim) if d not in dims]
    return dims, {d: at if at < start else at + shape for at, d in enumerate(left)}


@register_rule("index")
def _index(schema: OpSchema) -> list[Strategy]:
    _, goes = _indexed(schema)
    if any(_is_mask(i) for i in schema.argument(1, "indices")):
        return []
    return along(schema, [goes.get(d) for d in range(schema.specs[0].ndim)],
                 others=len(schema.specs) - 1, partial=True)


def _is_mask(index: Any) -> bool:
    return index is not None and str(index.tensor_meta.dtype) in ("torch.bool", "torch.uint8")


@register_rule("index_put", "_index_put_impl", "_unsafe_index_put")
def _index_put(schema: OpSchema) -> list[Strategy]:
    """Cuts of the dimensions that are not indexed, of the values too."""
    dims, goes = _indexed(schema)
    if any(_is_mask(i) for i in schema.argument(1, "indices")):
        return []
    values = schema.specs[-1]
    whole = max(goes.values(), default=-1) + 1
    found: list[Strategy] = []
    for d in cut_dims(schema.specs[0]):
        if d in dims:
            continue
        at = goes[d] - (whole - values.ndim)
        lies: Placement = Shard(at) if at >= 0 and values.shape[at] > 1 else R
        found.append(((Shard(d),), (Shard(d), *[R] * (len(schema.specs) - 2), lies)))
    return found


@register_rule("slice_backward", "select_backward")
def _part_backward(schema: OpSchema) -> OutputSharding:
    """Zeros, with the gradient in its place: whole along that dimension."""
    from flambeau.distributed.tensor._sharding_prop import cheapest
    spec, sizes = schema.specs[0], list(schema.argument(1, "input_sizes"))
    dims = schema.argument(2, "dim")
    if isinstance(dims, tuple) and any(isinstance(index, slice) for index in dims):
        dims = [d for d, index in enumerate(dims) if index != slice(None)]
    dims = normalize_dims(dims, len(sizes))
    if schema.name == "select_backward":
        mapping: list[Any] = [d + (d >= dims[0]) for d in range(spec.ndim)]
    else:
        mapping = [None if d in dims else d for d in range(spec.ndim)]
    plan = cheapest(schema, along(schema, mapping, partial=True))
    local, _ = compute_local_shape_and_global_offset(sizes, schema.mesh,
                                                     plan.outputs)      # type: ignore
    op = schema.op
    plan.run = lambda grad, sizes, *rest, **options: op(grad, list(local), *rest, **options)
    return plan


@register_rule("slice_scatter", "select_scatter")
def _part_written(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    at = normalize_dim(schema.argument(2, "dim", 0), spec.ndim)
    found: list[Strategy] = []
    for d in sorted({*cut_dims(spec), *cut_dims(schema.specs[1])}):
        if d != at:
            part = d - (schema.name == "select_scatter" and d > at)
            found.append(((Shard(d),), (Shard(d), Shard(part))))
    return found


@register_rule("bucketize", "searchsorted")
def _bucketize(schema: OpSchema) -> list[Strategy]:
    if schema.name == "searchsorted" or len(schema.specs) < 2:
        return []
    spec = schema.specs[0]
    return [((cut,), (cut, R)) for cut in [*map(Shard, cut_dims(spec)), *strided_cuts(spec)]]


@register_rule("one_hot", "_to_dense")
def _onto_new_dim(schema: OpSchema) -> list[Strategy]:
    return [((Shard(d),), (Shard(d),)) for d in cut_dims(schema.specs[0])]
