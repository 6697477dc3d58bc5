"""What ops there are on sharded tensors."""
from flambeau.distributed._shard.sharded_tensor._ops import misc_ops, tensor_ops
from flambeau.distributed._shard.sharded_tensor._ops.binary_cmp import allclose, equal
from flambeau.distributed._shard.sharded_tensor._ops.init import (
    constant_,
    kaiming_uniform_,
    normal_,
    uniform_,
)
