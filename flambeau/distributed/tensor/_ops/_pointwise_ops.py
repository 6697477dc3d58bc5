"""Ops that work element by element: cuts of the result are cuts of all inputs that have the
dimension."""
from __future__ import annotations

from math import prod
from typing import Any

from flambeau.core.shapes import broadcast_shapes
from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._ops.utils import (
    R,
    evenly_cut,
    partials,
    reduced_term,
    register_rule,
)
from flambeau.distributed.tensor.placement_types import Placement, Shard, _StridedShard

# Ops that sums go through, and how: in which of their tensors they are linear.
_LINEAR_IN_ALL = frozenset("add sub rsub copy".split())             # together
_LINEAR_IN_EACH = frozenset("mul".split())                          # one by one
_LINEAR_IN_FIRST = frozenset("""
    neg positive div clone _to_copy detach alias lift_fresh zero fill real imag conj
    _conj resolve_conj resolve_neg view_as_real lift to
""".split())


def pointwise_rule(schema: OpSchema) -> list[Strategy]:
    """Strategies of an op that works element by element."""
    return pointwise_strategies(schema)


def pointwise_strategies(schema: OpSchema, outputs: int = 1) -> list[Strategy]:
    """Cuts of the result that an input has, and terms where the op is linear."""
    specs = schema.specs
    shape = broadcast_shapes(*[tuple(s.shape) for s in specs])
    if schema.is_inplace_op():
        shape = tuple(specs[0].shape)
    found: list[Strategy] = []
    for cut in _cuts_of_result(schema, shape):
        found.append(((cut,) * outputs, [_cut_of(cut, s.shape, shape) for s in specs]))
    return found + _terms(schema, outputs)


def _cuts_of_result(schema: OpSchema, shape: tuple[int, ...]) -> list[Placement]:
    """Those of inputs that are not repeated along the dimension."""
    dims: set[int] = set()
    strided: dict[Placement, None] = {}
    for spec in schema.specs:
        shift = len(shape) - spec.ndim
        for p in spec.placements:
            if isinstance(p, Shard) and spec.shape[p.dim] == shape[p.dim + shift]:
                dims.add(p.dim + shift)
            elif isinstance(p, _StridedShard):
                strided[_StridedShard(p.dim + shift, split_factor=p.split_factor)] = None
    return [Shard(d) for d in sorted(dims)] + list(strided)


def _cut_of(cut: Any, shape: Any, result: tuple[int, ...]) -> Placement:
    """How an input lies where the result has a cut."""
    dim = cut.dim - (len(result) - len(shape))
    if dim < 0 or shape[dim] != result[cut.dim]:
        return R
    return Shard(dim) if isinstance(cut, Shard) else _StridedShard(
        dim, split_factor=cut.split_factor)


def _terms(schema: OpSchema, outputs: int) -> list[Strategy]:
    name, count = schema.name, len(schema.specs)
    found: list[Strategy] = []
    for term in partials(schema.specs):
        given = (term,) * outputs
        if name in _LINEAR_IN_FIRST:
            found.append((given, (term, *[R] * (count - 1))))
        elif name in _LINEAR_IN_ALL and count == 2:
            found.append((given, (term, term)))
        elif name in _LINEAR_IN_EACH:
            found += [(given, [term if i == at else R for i in range(count)])
                      for at in range(count)]
    return found


@register_rule("fill", "zero")
def _filled(schema: OpSchema) -> list[Strategy]:
    """Any cut, and any terms: what was there does not matter."""
    every = dict.fromkeys(schema.specs[0].placements)
    return [((p,), (p, *[R] * (len(schema.specs) - 1))) for p in every]


@register_rule("lift_fresh", "detach", "alias", "clone", "_to_copy", "copy", "positive", "lift",
               "view_as_real", "_conj", "resolve_conj", "resolve_neg",
               "masked_fill", "where", "clamp", "ldexp", "isclose", "threshold_backward",
               "tanh_backward", "sigmoid_backward", "gelu_backward", "silu_backward",
               "_fused_dropout", "native_dropout_backward", "hardtanh_backward",
               "leaky_relu_backward", "elu_backward", "softplus_backward", "hardsigmoid_backward",
               "hardswish_backward", "mish_backward", "log_sigmoid_backward", "nan_to_num",
               "fake_quantize_per_tensor_affine", "_prelu_kernel_backward")
def _elementwise(schema: OpSchema) -> list[Strategy]:
    return pointwise_strategies(schema)


@register_rule("log_sigmoid_forward", "native_dropout")
def _two_results(schema: OpSchema) -> list[Strategy]:
    return pointwise_strategies(schema, outputs=2)


# ---- losses: element by element, then a sum or a mean -------------------------------------------

_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
           "binary_cross_entropy_with_logits", "soft_margin_loss", "kl_div")


def _reduction(schema: OpSchema) -> int:
    """0 none, 1 mean, 2 sum."""
    names = [a.name for a in schema.op._schema.arguments]
    return schema.argument(names.index("reduction"), "reduction", 1)


@register_rule(*_LOSSES)
def _loss(schema: OpSchema) -> list[Strategy]:
    reduction = _reduction(schema)
    found: list[Strategy] = []
    for (cut,), inputs in pointwise_strategies(schema):
        if not isinstance(cut, Shard):
            continue
        if reduction == 0:
            found.append(((cut,), inputs))
        elif reduction == 2 or evenly_cut(schema.specs[0], cut.dim):
            found.append(((reduced_term("mean" if reduction == 1 else "sum"),), inputs))
    return found


@register_rule(*[f"{name}_backward" for name in _LOSSES])
def _loss_backward(schema: OpSchema) -> Any:
    """A mean's derivative divides by the number of elements: by that of the whole."""
    from flambeau.distributed.tensor._sharding_prop import cheapest
    plan = cheapest(schema, pointwise_strategies(schema))
    if _reduction(schema) == 1:
        whole, op = prod(schema.specs[1].shape), schema.op

        def run(*args: Any, **kwargs: Any) -> Any:
            found = op(*args, **kwargs)
            return found if found.numel() == whole else found * (found.numel() / whole)
        plan.run = run
    return plan
