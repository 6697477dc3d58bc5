"""Facts about this build and process, and arithmetic that sizes share with numbers."""
from __future__ import annotations

from importlib import import_module
from math import trunc
from typing import Any

import numpy as np

from flambeau._support.c_functions import matched, takes_nothing, takes_one
from flambeau._support.settings import warn_once
from flambeau.core import dtypes
from flambeau.core.op import public
from flambeau.core.type_info import contiguous_format
from flambeau.kernels import check_thread_count
from flambeau.schema.errors import type_name

has_lapack = has_openmp = has_spectral = True
has_mkl = False
legacy_contiguous_format = contiguous_format


@takes_nothing
def get_num_interop_threads() -> int:
    """How many threads run independent ops at once: one."""
    return 1


@takes_one
def set_num_interop_threads(int: int) -> None:
    """Accepted, and without effect: ops run one after the other."""
    if isinstance(int, bool) or not hasattr(int, "__index__"):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type_name(int)}")
    if int <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    check_thread_count(int)


@matched("() -> None")
def init_num_threads() -> None:
    """Accepted, and without effect."""


def compiled_with_cxx11_abi() -> bool:
    """Do extensions in C++ see the strings and lists of C++11? Always.

    Example:
        >>> torch.compiled_with_cxx11_abi()
        True
    """
    return True


# ---- arithmetic of sizes ------------------------------------------------------------------------


def sym_int(a: Any) -> int:
    """`a` rounded towards zero."""
    return int(a) if hasattr(a, "_array") else trunc(a)


def sym_float(a: Any) -> float:
    """`a` as a floating-point number."""
    return float(a)


def sym_not(a: Any) -> bool:
    """`not a`"""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number; floating if one of them is."""
    _check_real(a, b)
    found = max(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; floating if one of them is."""
    _check_real(a, b)
    found = min(a, b)
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def _check_real(*values: Any) -> None:
    known = (np.integer, np.floating, int, float)
    for value in values:
        if not isinstance(value, known):
            raise AssertionError(f"expected {known}, got {type(value)}")


def sym_sum(*args: Any) -> Any:
    """The sum of several numbers, one by one or in a sequence."""
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`, of one type."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected SymBool or bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_fresh_size(expr: Any) -> Any:
    """The number, read from a tensor: no trace knows where it comes from."""
    import flambeau
    return flambeau.tensor(expr).item()


def set_default_tensor_type(t: Any, /) -> None:
    """Make the dtype of a historical type (`flambeau.DoubleTensor`, or its name) the default."""
    import flambeau
    warn_once("torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
              "torch.set_default_dtype() and torch.set_default_device() as alternatives.")
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        t = getattr(flambeau if module == "torch" else import_module(module or t), name)
    d = getattr(t, "dtype", None) if isinstance(t, type) else None
    if not isinstance(d, dtypes.dtype):
        raise TypeError("invalid type object: only floating-point types are supported as the "
                        "default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    flambeau.set_default_dtype(d)


for _function in (get_num_interop_threads, set_num_interop_threads, init_num_threads,
                  compiled_with_cxx11_abi, sym_int, sym_float, sym_not, sym_max,
                  sym_min, sym_sum, sym_ite, sym_fresh_size, set_default_tensor_type):
    _function.__module__ = "torch"
    public["torch"][_function.__name__] = _function
for _name in ("has_lapack", "has_openmp", "has_spectral", "has_mkl", "legacy_contiguous_format"):
    public["torch"][_name] = globals()[_name]
