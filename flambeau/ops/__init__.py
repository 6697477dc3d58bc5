"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

from flambeau.ops import (
    activation,
    attention,
    bitwise,
    comparison,
    complex,
    conditional,
    convolve,
    copying,
    create,
    cross_entropy,
    differences,
    distance,
    dropout,
    elementary,
    embedding,
    extremes,
    index,
    join,
    loss,
    matmul,
    moments,
    normalize,
    padding,
    pointwise,
    polynomials,
    pool,
    random,
    rearrange,
    reduce,
    resample,
    rounding,
    sampling,
    scan,
    searching,
    shape,
    softmax,
    sort,
    special,
)

__all__ = ["activation", "attention", "bitwise", "comparison", "complex", "conditional",
           "convolve", "copying", "create", "cross_entropy", "differences", "distance", "dropout",
           "elementary", "embedding", "extremes", "index", "join", "loss", "matmul", "moments",
           "normalize", "padding", "pointwise", "polynomials", "pool", "random", "rearrange",
           "reduce", "resample", "rounding", "sampling", "scan", "searching", "shape", "softmax",
           "sort", "special"]
