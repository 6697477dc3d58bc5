"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

import importlib
from collections.abc import Callable
from typing import Any

from flambeau._late import find_missing, late_families
from flambeau.core.tensor import Tensor

# What declarations rely on while they are made comes before them, whatever the alphabet says.
for _module in ("transforms.meta", "transforms.function_modes", "ops.misfit", "ops.coercion",
                "ops.inplace"):
    importlib.import_module(f"flambeau.{_module}")

# The families that nearly every program needs; the others are imported when one of their ops is
# first asked for, in this order (the likeliest first). Families that bring operators are common:
# Python looks for `__and__` on the class without asking anybody.
COMMON = (
    "pointwise", "elementary", "comparison", "bitwise", "rounding", "conditional", "complex",
    "copying", "from_data", "create", "legacy_types", "ranges", "index", "gather", "slices", "join",
    "matmul", "methods", "reduce", "shape", "strided",
)
LATE = [
    "blame", "random", "extremes", "activation", "softmax", "moments", "sort", "dropout",
    "conjugate_views", "inquiry", "embedding", "convolve", "pool", "normalize", "cross_entropy",
    "loss", "attention", "padding", "scan", "searching", "added", "affine_graph", "products",
    "einsum", "differences", "histograms", "sampling", "facts", "rearrange", "memory_methods",
    "bilinear", "decompositions", "distance", "foreach", "fourier", "ldl", "linalg", "lowrank",
    "polynomials", "recurrent", "resample", "scatter_views", "segments", "solvers", "sparse",
    "special", "spectrogram", "windows", "quantized_tensors", "fake_quantize", "opaque",
]
for _module in COMMON:
    importlib.import_module(f"flambeau.ops.{_module}")


def load(found: Callable[[], bool] = lambda: False) -> bool:
    """Import further families until `found()`; without it, all of them."""
    while LATE:
        importlib.import_module(f"flambeau.ops.{LATE.pop(0)}")
        if found():
            return True
    return found()


late_families.append(load)


def _missing_method(self: Tensor, name: str) -> Any:
    return getattr(self, name) if find_missing(Tensor, name) is not None else None


Tensor.__getattr__ = _missing_method


def __getattr__(name: str) -> Any:
    if name in LATE:
        return importlib.import_module(f"flambeau.ops.{name}")
    raise AttributeError(f"module 'flambeau.ops' has no attribute {name!r}")
