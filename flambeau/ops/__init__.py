"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

import importlib
from typing import Any

# What declarations rely on while they are made comes before them, whatever the alphabet says.
for _module in ("transforms.meta", "transforms.function_modes", "ops.coercion", "ops.inplace"):
    importlib.import_module(f"flambeau.{_module}")

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
    decompositions,
    differences,
    distance,
    dropout,
    einsum,
    elementary,
    embedding,
    extremes,
    facts,
    foreach,
    fourier,
    index,
    inquiry,
    join,
    linalg,
    loss,
    lowrank,
    matmul,
    memory_methods,
    methods,
    moments,
    normalize,
    padding,
    pointwise,
    polynomials,
    pool,
    products,
    random,
    rearrange,
    recurrent,
    reduce,
    resample,
    rounding,
    sampling,
    scan,
    scatter_views,
    searching,
    shape,
    softmax,
    solvers,
    sort,
    sparse,
    special,
    spectrogram,
    windows,
)


def __getattr__(name: str) -> Any:
    """The ops under the names of PyTorch's dispatcher: `torch.ops.aten.mul.Tensor`."""
    if name == "aten":
        from flambeau.utils._python_dispatch import aten
        return aten
    if name == "profiler":
        from flambeau.autograd import profiler
        return profiler
    raise AttributeError(f"module 'flambeau.ops' has no attribute {name!r}")


__all__ = ["activation", "attention", "bilinear", "bitwise", "comparison", "complex", "conditional",
           "convolve", "copying", "create", "cross_entropy", "decompositions", "differences",
           "distance", "dropout", "einsum", "elementary", "embedding", "extremes", "facts",
           "foreach", "fourier", "index", "inquiry", "join", "linalg", "loss", "lowrank", "matmul",
           "memory_methods", "methods", "moments", "normalize", "padding", "pointwise",
           "polynomials", "pool", "products", "random", "rearrange", "recurrent", "reduce",
           "resample", "rounding", "sampling", "scan", "scatter_views", "searching", "shape",
           "softmax", "solvers", "sort", "sparse", "special", "spectrogram", "windows"]
