"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

from flambeau.ops import (
    bitwise,
    comparison,
    complex,
    conditional,
    copying,
    create,
    dropout,
    elementary,
    extremes,
    index,
    join,
    matmul,
    moments,
    pointwise,
    random,
    reduce,
    rounding,
    sampling,
    scan,
    searching,
    shape,
    sort,
)

__all__ = ["bitwise", "comparison", "complex", "conditional", "copying", "create", "dropout",
           "elementary", "extremes", "index", "join", "matmul", "moments", "pointwise", "random",
           "reduce", "rounding", "sampling", "scan", "searching", "shape", "sort"]
