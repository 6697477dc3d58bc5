"""What parameters of modules ask of sharded tensors."""
from shard_cases import deprecated, whole

import flambeau as torch
from flambeau.distributed._shard import sharded_tensor as st
from flambeau.distributed._shard.sharded_tensor._ops.misc_ops import (
    tensor_has_compatible_shallow_copy_type,
)


@deprecated
def test_a_sharded_tensor_is_replaced_whole(alone):
    a, b = st.ones(whole(), 2), torch.ones(2)
    assert torch._has_compatible_shallow_copy_type(b, torch.ones(3)) is True
    for pair in ((a, b), (b, a), (a, a)):
        assert torch._has_compatible_shallow_copy_type(*pair) is False
    assert tensor_has_compatible_shallow_copy_type((), (a, a), {}, None) is False
