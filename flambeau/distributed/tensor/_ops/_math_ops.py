"""Reductions, softmax, normalisation, classification losses."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import flambeau
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec
from flambeau.distributed.tensor._op_schema import OpSchema, OutputSharding, Strategy
from flambeau.distributed.tensor._ops._pointwise_ops import pointwise_strategies
from flambeau.distributed.tensor._ops.utils import (
    R,
    along,
    cut_dims,
    evenly_cut,
    except_dims,
    normalize_dim,
    normalize_dims,
    partials,
    pieces,
    reduced_term,
    register_rule,
    strided_cuts,
)
from flambeau.distributed.tensor.placement_types import Partial, Placement, Shard

# ---- reductions ---------------------------------------------------------------------------------

def _gives(term: Partial, spec: DTensorSpec, dim: int) -> bool:
    """Is the reduction of each piece a term? A mean wants pieces of one size, an extreme pieces
    that have something in them."""
    if term.reduce_op == "avg":
        return evenly_cut(spec, dim)
    if term.reduce_op in ("max", "min"):
        count, size = pieces(spec, dim), spec.shape[dim]
        return evenly_cut(spec, dim) or -(-size // count) * (count - 1) < size
    return True


def _reduced(schema: OpSchema, dims: Iterable[int], keepdim: bool, term: Partial | None,
             outputs: int = 1) -> list[Strategy]:
    """Cuts of the dimensions that stay; of the others, those that give terms."""
    spec = schema.specs[0]
    gone = set(dims)
    found: list[Strategy] = []
    for d in cut_dims(spec):
        if d not in gone:
            to = d if keepdim else d - sum(g < d for g in gone)
            found.append(((Shard(to),) * outputs, (Shard(d),)))
        elif term is not None and _gives(term, spec, d):
            found.append(((term,), (Shard(d),)))
    if term is not None and term.reduce_op != "avg":
        found += [((term,), (cut,)) for cut in strided_cuts(spec) if cut.dim in gone]
    return found


@register_rule("sum", "nansum", "mean", "amax", "amin", "prod", "all", "any")
def _reduction(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    dims = normalize_dims(schema.argument(1, "dim"), spec.ndim)
    if schema.name in ("prod", "all", "any", "sum") and schema.op._overloadname == "default":
        dims = list(range(spec.ndim))  # type: ignore[assignment]
    keepdim = bool(schema.argument(2, "keepdim", False))
    found = _reduced(schema, dims, keepdim, reduced_term(schema.name))
    if schema.name == "sum":
        found += [((p,), (p,)) for p in partials([spec])]
    return found


@register_rule("max", "min")
def _extreme(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    if schema.op._overloadname == "other":
        return pointwise_strategies(schema)
    if schema.op._overloadname == "default":
        return _reduced(schema, range(spec.ndim), False, reduced_term(schema.name))
    dims = normalize_dims(schema.argument(1, "dim"), spec.ndim)
    return _reduced(schema, dims, bool(schema.argument(2, "keepdim", False)), None, outputs=2)


@register_rule("argmax", "argmin", "logsumexp", "var", "std", "var_mean", "std_mean",
               "count_nonzero")
def _reduction_of_whole(schema: OpSchema) -> list[Strategy]:
    """Reductions that need all along their dimensions."""
    spec = schema.specs[0]
    outputs = 2 if schema.name.endswith("_mean") else 1
    dims = normalize_dims(schema.argument(1, "dim"), spec.ndim)
    keepdim = schema.kwargs_schema.get("keepdim", False)
    if schema.name in ("argmax", "argmin", "logsumexp"):
        keepdim = schema.argument(2, "keepdim", False)
    return _reduced(schema, dims, bool(keepdim), None, outputs)


@register_rule("linalg_vector_norm", "norm")
def _norm(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    order = schema.argument(1, "ord" if schema.name[0] == "l" else "p", 2)
    order = 2 if order is None else order
    if isinstance(order, str):
        return []
    dims = normalize_dims(schema.argument(2, "dim"), spec.ndim)
    keepdim = bool(schema.argument(3, "keepdim", False))
    return _reduced(schema, dims, keepdim, reduced_term("norm", order))


# ---- softmax ------------------------------------------------------------------------------------

@register_rule("_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax")
def _softmax(schema: OpSchema) -> list[Strategy]:
    return except_dims(schema, [schema.argument(1, "dim")])


@register_rule("_softmax_backward_data", "_log_softmax_backward_data")
def _softmax_backward(schema: OpSchema) -> list[Strategy]:
    ndim = schema.specs[0].ndim
    at = normalize_dim(schema.argument(2, "dim"), ndim)
    dims = sorted({d for s in schema.specs for d in cut_dims(s) if d != at})
    return [((Shard(d),), (Shard(d), Shard(d))) for d in dims]


# ---- normalisation ------------------------------------------------------------------------------

@register_rule("native_layer_norm", "_fused_rms_norm", "rms_norm")
def _layer_norm(schema: OpSchema) -> list[Strategy]:
    spec = schema.specs[0]
    outer = spec.ndim - len(schema.argument(1, "normalized_shape"))
    outputs = {"native_layer_norm": 3, "_fused_rms_norm": 2}.get(schema.name, 1)
    return along(schema, [d if d < outer else None for d in range(spec.ndim)], outputs=outputs,
                 others=len(schema.specs) - 1)


@register_rule("native_layer_norm_backward")
def _layer_norm_backward(schema: OpSchema) -> list[Strategy]:
    """Each process has a term of the gradients of weight and bias."""
    args = schema.args_schema
    outer = len(args[1].shape) - len(args[2])
    dims = sorted({d for s in schema.specs[:2] for d in cut_dims(s) if d < outer})
    mask = args[-1]
    found: list[Strategy] = []
    for d in dims:
        parameters = (R,) * sum(isinstance(a, DTensorSpec) for a in args[5:7])
        found.append(((Shard(d) if mask[0] else None, Partial() if mask[1] else None,
                       Partial() if mask[2] else None), (*[Shard(d)] * 4, *parameters)))
    return found


@register_rule("native_group_norm")
def _group_norm(schema: OpSchema) -> OutputSharding:
    """Cuts of the batch; the op is told how much of it there is."""
    from flambeau.distributed.tensor._sharding_prop import cheapest
    plan = cheapest(schema, along(schema, [0, *[None] * (schema.specs[0].ndim - 1)], outputs=3,
                                  others=len(schema.specs) - 1), outputs=3)
    op = schema.op
    plan.run = lambda x, weight, bias, n, *rest: op(x, weight, bias, x.shape[0], *rest)
    return plan


@register_rule("native_group_norm_backward")
def _group_norm_backward(schema: OpSchema) -> OutputSharding:
    from flambeau.distributed.tensor._sharding_prop import cheapest
    mask = schema.args_schema[-1]
    parameters = (R,) * (len(schema.specs) - 4)
    strategy: Strategy = ((Shard(0) if mask[0] else None, Partial() if mask[1] else None,
                           Partial() if mask[2] else None), (*[Shard(0)] * 4, *parameters))
    plan = cheapest(schema, [strategy], outputs=3)
    op = schema.op
    plan.run = lambda grad, x, mean, rstd, weight, n, *rest: op(
        grad, x, mean, rstd, weight, x.shape[0], *rest)
    return plan


# ---- classification losses ----------------------------------------------------------------------

def _class_cut(spec: DTensorSpec, d: int) -> int:
    """The dimension of the targets that one of the scores is: they have no classes."""
    return d if d == 0 else d - 1


@register_rule("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(schema: OpSchema) -> Any:
    """Cuts of all dimensions but that of the classes."""
    from flambeau.distributed.tensor._sharding_prop import cheapest
    plan = cheapest(schema, _nll_strategies(schema), outputs=2)
    means = [i for i, p in enumerate(plan.output(0)) if p == reduced_term("mean")]
    if means:
        plan.run = _mean_of_all(schema, means)
    return plan


def _mean_of_all(schema: OpSchema, mesh_dims: list[int]) -> Any:
    """The loss of this process's elements, such that the mean over the processes is that over all
    elements, by their weights."""
    from flambeau.distributed import _functional_collectives as funcol
    op, mesh = schema.op, schema.mesh

    def run(scores: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
        mean, own_weight = op(scores, target, weight, reduction, ignore_index)
        total = flambeau.where(own_weight > 0, mean * own_weight, 0.0)  # no element, no mean
        whole, count = own_weight, 1
        for i in mesh_dims:
            whole, count = funcol.all_reduce(whole, "sum", (mesh, i)), count * mesh.size(i)
        return total / whole * count, own_weight
    return run


def _nll_strategies(schema: OpSchema) -> list[Strategy]:
    scores, target = schema.specs[:2]
    reduction = schema.argument(3, "reduction", 1)
    classes = 0 if scores.ndim < 2 else 1
    weights = (R,) * (len(schema.specs) - 2)
    dims = {d for d in cut_dims(scores) if d != classes}
    dims |= {d if d == 0 else d + 1 for d in cut_dims(target)} if scores.ndim > 1 else set()
    found: list[Strategy] = []
    for d in sorted(dims):
        at = _class_cut(scores, d)
        inputs: tuple[Placement, ...] = (Shard(d), Shard(at), *weights)
        if reduction == 0:
            found.append(((Shard(at), R), inputs))
        else:
            found.append(((reduced_term("mean" if reduction == 1 else "sum"), Partial()), inputs))
    return found


@register_rule("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(schema: OpSchema) -> OutputSharding:
    from flambeau.distributed.tensor._sharding_prop import cheapest
    plan = cheapest(schema, _nll_backward_strategies(schema))
    op = schema.op

    def run(grad: Any, scores: Any, target: Any, weight: Any, reduction: int, ignore_index: int,
            total_weight: Any) -> Any:
        if reduction != 1:
            return op(grad, scores, target, weight, reduction, ignore_index, total_weight)
        return op(grad, scores, target, weight, 2, ignore_index, total_weight) / total_weight
    plan.run = run
    return plan


def _nll_backward_strategies(schema: OpSchema) -> list[Strategy]:
    scores = schema.specs[1]
    reduction = schema.argument(4, "reduction", 1)
    classes = 0 if scores.ndim < 2 else 1
    weights = (R,) * (len(schema.specs) - 3)
    found: list[Strategy] = []
    for d in cut_dims(scores):
        if d != classes:
            at = _class_cut(scores, d)
            found.append(((Shard(d),), (Shard(at) if reduction == 0 else R, Shard(d), Shard(at),
                                        *weights)))
    return found


# ---- linear algebra -----------------------------------------------------------------------------

@register_rule("linalg_inv_ex", "linalg_cholesky_ex", "cholesky", "linalg_det", "_linalg_det",
               "linalg_eigh", "_linalg_eigh", "linalg_qr", "linalg_solve_ex", "_linalg_svd")
def _of_matrices(schema: OpSchema) -> Any:
    """Cuts of the batch would do; whole tensors do, too."""
    return []
