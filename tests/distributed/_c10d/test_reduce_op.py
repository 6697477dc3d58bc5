"""How values of several processes become one."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import ReduceOp


def test_types():
    names = ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"]
    assert [getattr(ReduceOp, name).value for name in names] == list(range(9))
    assert str(ReduceOp.SUM) == "RedOpType.SUM" and repr(ReduceOp.MAX) == "<RedOpType.MAX: 4>"
    assert ReduceOp.RedOpType.MIN is ReduceOp.MIN or ReduceOp.RedOpType.MIN == ReduceOp.MIN


def test_ops():
    op = ReduceOp(ReduceOp.MAX)
    assert op == ReduceOp.MAX and op == ReduceOp(ReduceOp.MAX) and op != ReduceOp.MIN
    assert op.op == ReduceOp.MAX and isinstance(op, ReduceOp)
    assert isinstance(ReduceOp.MAX, ReduceOp) and not isinstance(3, ReduceOp)
    assert hash(op) == hash(ReduceOp(ReduceOp.MAX))
    assert pickle.loads(pickle.dumps(ReduceOp.SUM)) == ReduceOp.SUM
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        ReduceOp("SUM")


@pytest.mark.parametrize("factor", [2.5, torch.tensor([3.0])])
def test_factors(factor):
    op = dist._make_nccl_premul_sum(factor)
    assert op == ReduceOp.PREMUL_SUM and op.op == ReduceOp.PREMUL_SUM


def test_the_older_name():
    with pytest.warns(FutureWarning, match="`torch.distributed.reduce_op` is deprecated"):
        assert dist.reduce_op.MAX == ReduceOp.MAX
