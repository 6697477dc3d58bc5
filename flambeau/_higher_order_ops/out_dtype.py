"""`out_dtype`: an op whose result is computed in another type."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._library.higher_order import HigherOrderOperator
from flambeau._ops import OpOverload
from flambeau.dispatch.aten.keys import DispatchKey
from flambeau.utils import _pytree

_ALLOWED = ("linear", "mm", "convolution", "conv2d", "mul", "div", "add", "bmm", "addmm")


class OutDtypeOperator(HigherOrderOperator):
    """`out_dtype(op, dtype, *args)`: `op` with arguments and result of a wider type.

    >>> import flambeau
    >>> x = flambeau.full((1, 2), 100, dtype=flambeau.int8)
    >>> out_dtype(flambeau.ops.aten.mm.default, flambeau.int32, x, x.T)
    tensor([[20000]], dtype=torch.int32)
    """

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op: Any, output_dtype: Any, *args: Any) -> Any:
        if not isinstance(op, OpOverload):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op._schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if op._opname not in _ALLOWED:
            raise ValueError(f"out_dtype only allows the following operators: {_ALLOWED}.")
        return super().__call__(op, output_dtype, *args)


out_dtype = OutDtypeOperator()


@out_dtype.py_impl(DispatchKey.CompositeImplicitAutograd)
def out_dtype_dense(op: Any, output_dtype: Any, *args: Any) -> Any:
    """Compute in the common type of the arguments and `output_dtype`."""
    kind = output_dtype
    for arg in args:
        if isinstance(arg, Tensor):
            kind = flambeau.promote_types(kind, arg.dtype)
    wide = _pytree.tree_map_only(Tensor, lambda t: t.to(kind), args)
    return op(*wide).to(output_dtype)


__all__ = ["OutDtypeOperator", "out_dtype", "out_dtype_dense"]
