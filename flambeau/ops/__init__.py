"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

from flambeau.ops import (
    complex,
    copying,
    create,
    dropout,
    index,
    join,
    matmul,
    pointwise,
    random,
    reduce,
    sampling,
    shape,
)

__all__ = ["complex", "copying", "create", "dropout", "index", "join", "matmul", "pointwise",
           "random", "reduce", "sampling", "shape"]
