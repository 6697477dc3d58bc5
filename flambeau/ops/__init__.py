"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

from flambeau.ops import coercion, inplace  # isort: skip  (the declarations below use them)
from flambeau.transforms import function_modes, meta  # isort: skip

from flambeau.ops import (
    activation,
    attention,
    bilinear,
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
    methods,
    moments,
    normalize,
    padding,
    pointwise,
    polynomials,
    pool,
    random,
    rearrange,
    recurrent,
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

__all__ = ["activation", "attention", "bilinear", "bitwise", "comparison", "complex", "conditional",
           "convolve", "copying", "create", "cross_entropy", "differences", "distance", "dropout",
           "elementary", "embedding", "extremes", "index", "join", "loss", "matmul", "moments",
           "normalize", "padding", "pointwise", "polynomials", "pool", "random", "rearrange",
           "recurrent", "reduce", "resample", "rounding", "sampling", "scan", "searching", "shape",
           "softmax", "sort", "special"]
