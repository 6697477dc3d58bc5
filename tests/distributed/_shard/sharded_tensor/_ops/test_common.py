"""Ops that do the same to every piece."""
import pytest
from shard_cases import deprecated, whole

import flambeau as torch
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor._ops._common import (
    _register_sharded_op_on_local_shards,
    _sharded_op_common,
)

pytestmark = deprecated


def test_pieces_are_mapped(alone):
    op, table = torch.exp, st.api._SHARDED_OPS
    _register_sharded_op_on_local_shards(op)
    try:
        a = st.zeros(whole(), 2)
        made = torch.exp(a)
        assert made.local_tensor().tolist() == [1, 1] and not a.local_tensor().any()
        assert made.sharding_spec() is a.sharding_spec()
    finally:
        del table[op]


def test_checks_come_first_and_may_stop(alone):
    seen = []

    def check(*args, **kwargs):
        seen.append((args, kwargs))
        if kwargs.get("bad"):
            raise ValueError("bad")

    @_sharded_op_common(torch.exp, lambda x, **kwargs: kwargs.get("same"), check)
    def op(types, args=(), kwargs=None, pg=None):
        return "computed", kwargs
    a = st.zeros(whole(), 2)
    assert op((), (a,)) == ("computed", {})
    assert op((), (a,), {"same": True}) is a
    assert [kwargs for _, kwargs in seen] == [{}, {"same": True}]
    with pytest.raises(ValueError, match="bad"):
        op((), (a,), {"bad": True})
    with pytest.raises(TypeError, match=r"torch function 'exp'.* without any distributed tensor"):
        op((), (torch.ones(2),))
