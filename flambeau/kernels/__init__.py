"""Kernels: arrays in, arrays out. No tensor is known here.

Every kernel has a readable twin in NumPy; where the C++ extension was built, its own version takes
the twin's place under the same name. The environment variable ``FLAMBEAU_KERNELS=reference`` leaves
the extension out.
"""

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

from flambeau._support.c_functions import takes_nothing, takes_one, type_name
from flambeau.kernels import dtypes
from flambeau.kernels._extension import native as _native
from flambeau.kernels._extension import why_not as _why_not
from flambeau.kernels._quiet import IGNORE, _extobj_contextvar, quiet
from flambeau.kernels.declaration import names_of
from flambeau.kernels.dtypes import cast, check_divisor
from flambeau.kernels.pointwise import activations, elementary
from flambeau.kernels.reduction import reductions, statistics

native_available = _native is not None


def _choose():
    """Put each kernel's best version into this module's namespace."""
    space = globals()
    for module, names in ((elementary, names_of(elementary)), (activations, names_of(activations)),
                          (reductions, reductions.REDUCTIONS), (statistics, statistics.STATISTICS),
                          (dtypes, ("cast", "check_divisor"))):
        for name in names:
            twin = getattr(module, name)
            space[name] = _native.adopt(name, twin) if _native is not None else twin


if TYPE_CHECKING:
    def __getattr__(name):
        """The kernels that `_choose` finds."""

_choose()
if _native is not None:
    if _extobj_contextvar is not None:
        _native.set_quiet(_extobj_contextvar, IGNORE)
        quiet = _native.quiet


def check_thread_count(n):
    """Raise if `n` is more than a C int holds."""
    if n >= 2**31:
        raise ValueError(f"Overflow when unpacking long{' long' if n >= 2**63 else ''}")


@takes_one
def set_num_threads(n):
    """Let native kernels use at most `n` threads."""
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise RuntimeError(f"set_num_threads expects an int, but got {type_name(n)}")
    if n < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    check_thread_count(n)
    if _native is not None:
        _native.set_num_threads(n)
    from flambeau.kernels.linalg import blas
    blas.set_num_threads(n)


@takes_nothing
def get_num_threads():
    """How many threads native kernels may use; 1 without them."""
    return _native.get_num_threads() if _native is not None else 1


def set_error_name(name):
    """Decorates a class that the interpreter's errors are to name as PyTorch's: `torch.Size`."""
    def decorate(cls):
        if _native is not None:
            _native.cite_type_as(cls, name)
        return cls
    return decorate


def set_flush_denormal(mode):
    """Let this thread's arithmetic take denormal numbers as zero, or not; False if it cannot."""
    return _native is not None and _native.set_flush_denormal(mode)


def register_bfloat16():
    """Tell the native kernels which dtype is bfloat16; called when ml_dtypes is first loaded."""
    if _native is not None:
        import ml_dtypes
        import numpy as np

        _native.register_bfloat16(np.dtype(ml_dtypes.bfloat16))


def describe():
    """What runs, as a dictionary: for ``flambeau info``."""
    if _native is None:
        return {"kernels": "reference", "native": False, "reason": _why_not, "threads": 1}
    return {"kernels": "native", "native": True, "openmp": _native.openmp,
            "threads": get_num_threads(), "simd": _native.simd(), "compiler": _native.compiler}
