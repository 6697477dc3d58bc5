"""The rules of ops on distributed tensors, family by family."""
from flambeau.distributed.tensor._ops import (
    _conv_ops,
    _embedding_ops,
    _math_ops,
    _matrix_ops,
    _pointwise_ops,
    _random_ops,
    _tensor_ops,
    _view_ops,
)
from flambeau.distributed.tensor._ops._pointwise_ops import pointwise_rule
from flambeau.distributed.tensor._ops.utils import register_op_strategy

__all__ = ["pointwise_rule", "register_op_strategy"]
