"""Products of matrices: cuts of a free dimension are cuts of the result, cuts of the dimension that
is summed over give terms."""
from __future__ import annotations

from collections.abc import Sequence

from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._ops.utils import R, partials, register_rule
from flambeau.distributed.tensor.placement_types import Partial, Placement, Shard

_EQUATIONS = {"mm": "mk,kn->mn", "bmm": "bmk,bkn->bmn", "mv": "mk,k->m", "dot": "k,k->",
              "vdot": "k,k->", "outer": "m,n->mn", "ger": "m,n->mn", "addmm": "mk,kn->mn",
              "baddbmm": "bmk,bkn->bmn", "addmv": "mk,k->m"}


def einsum_strategies(equation: str, terms: Sequence[Partial] = ()) -> list[Strategy]:
    """The strategies of a product: of dimensions of both factors, those summed over, those of the
    first, those of the second; and terms of one factor."""
    inputs, output = equation.split("->")
    first, second = inputs.split(",")

    def cut(labels: str, letter: str) -> Placement:
        return Shard(labels.index(letter)) if letter in labels else R
    letters = dict.fromkeys([*[c for c in output if c in first and c in second],
                             *[c for c in first if c not in output],
                             *[c for c in output if c in first],
                             *[c for c in output if c in second]])
    found: list[Strategy] = []
    for letter in letters:
        result = Shard(output.index(letter)) if letter in output else Partial()
        found.append(((result,), (cut(first, letter), cut(second, letter))))
    for term in terms:
        found += [((term,), (term, R)), ((term,), (R, term))]
    return found


@register_rule("mm", "bmm", "mv", "dot", "vdot", "outer", "ger")
def _product(schema: OpSchema) -> list[Strategy]:
    return einsum_strategies(_EQUATIONS[schema.name], partials(schema.specs))


@register_rule("addmm", "baddbmm", "addmv")
def _product_and_sum(schema: OpSchema) -> list[Strategy]:
    """The product, and a tensor that is added: it lies as the result does."""
    addend = schema.specs[0]
    found: list[Strategy] = []
    ndim = _EQUATIONS[schema.name].split("->")[1]
    for (result,), factors in einsum_strategies(_EQUATIONS[schema.name],
                                                partials(schema.specs)):
        lies: Placement = result
        if isinstance(result, Shard):
            dim = result.dim - (len(ndim) - addend.ndim)
            lies = Shard(dim) if dim >= 0 and addend.shape[dim] > 1 else R
        found.append(((result,), (lies, *factors)))
    return found


# ---- attention ----------------------------------------------------------------------------------

def _attention(outputs: int, inputs: int, whole: int) -> list[Strategy]:
    """Cuts of the batch and of the heads, of tensors that all have these first; `whole` outputs
    at the end have them not."""
    found: list[Strategy] = []
    for dim in (0, 1):
        found.append(((*[Shard(dim)] * outputs, *[R] * whole), (Shard(dim),) * inputs))
    return found


@register_rule("_scaled_dot_product_flash_attention_for_cpu",
               "_scaled_dot_product_flash_attention_for_cpu_backward")
def _flash_attention(schema: OpSchema) -> list[Strategy]:
    backward = schema.name.endswith("backward")
    tensors = len(schema.specs)
    counted = 6 if backward else 3          # the rest is a mask
    if tensors > counted:
        mask = schema.specs[-1]
        return [(outputs, (*inputs, _mask_cut(mask.shape, dim)))
                for dim, (outputs, inputs) in enumerate(_attention(3 if backward else 2,
                                                                   counted, 0))]
    return _attention(3 if backward else 2, counted, 0)


def _mask_cut(shape: Sequence[int], dim: int) -> Placement:
    at = dim - (4 - len(shape))
    return Shard(at) if at >= 0 and shape[at] > 1 else R
