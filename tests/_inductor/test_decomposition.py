"""Ops in terms of others, kept in a table of their own."""
import flambeau as torch
from flambeau._inductor import decomposition


def test_a_rule_is_kept():
    op = torch.ops.aten.special_entr.default
    before = dict(decomposition.decompositions)
    decomposition.decompositions.pop(op, None)
    try:
        @decomposition.register_decomposition([op])
        def entr(x):
            return -x * x.log()
        assert decomposition.decompositions[op] is entr
    finally:
        decomposition.decompositions.clear(), decomposition.decompositions.update(before)
