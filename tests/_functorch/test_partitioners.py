"""Which ops a partitioner computes again."""
import flambeau as torch
from flambeau._functorch.partitioners import get_default_op_list


def test_kinds_of_ops():
    found, aten = get_default_op_list(), torch.ops.aten
    assert {aten.alias, aten.as_strided, aten.expand, aten.permute, aten.select, aten.slice,
            aten.split, aten.squeeze, aten.t, aten.unsqueeze, aten.view} <= found.view_ops
    assert {aten.native_dropout, aten.rand_like, aten.randn_like} <= found.random_ops
    assert {aten.mm, aten.convolution} <= found.compute_intensive_ops
    assert not found.view_ops & found.random_ops
    assert not {aten.add, aten.clone, aten.mm} & found.view_ops
