"""What ops on sharded tensors share."""
import pytest
from shard_cases import deprecated, whole

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.common_op_utils import _basic_validation, _register_default_op

pytestmark = deprecated


def test_sharded_tensors_of_one_group_have_to_be_there(alone):
    a = st.ones(whole(), 2)
    _basic_validation(torch.add, (1, [a]), {"other": {"b": a}})
    with pytest.raises(ValueError, match="No input for 'add'"):
        _basic_validation(torch.add)
    with pytest.raises(TypeError, match="called without any distributed tensor"):
        _basic_validation(torch.add, (torch.ones(2),), {"alpha": 2})
    other = st.ones(whole(), 2, process_group=dist.new_group([0]))
    with pytest.raises(RuntimeError, match="should use the same ProcessGroup"):
        _basic_validation(torch.add, (a,), {"other": other})


def test_a_default_op_does_not_ask_again(alone):
    table = {}
    _register_default_op(torch.Tensor.dim, lambda op: lambda f: table.setdefault(op, f))
    a = st.ones(whole(), 2, 3)
    assert table[torch.Tensor.dim]((), (a,)) == 2
