"""One thread for small matrices in NumPy's BLAS.

OpenBLAS has a pool of threads. A thread of it that waits for its next job keeps its processor busy
for a while, and takes it from our own pool and from whatever else runs: factorisations of 128 rows
took 50 times as long as by one thread. The number of threads is a global of the library, reached by
its own C functions; where they are not found, nothing is limited.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from typing import Any

import numpy as np

SMALL = 256         # from more rows and columns on, several threads are faster

_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")


@functools.cache
def controls(module: str) -> tuple[Any, Any] | None:
    """The functions that tell and set the number of threads, of the library that an extension
    module is linked with."""
    import importlib
    try:
        library = ctypes.CDLL(importlib.import_module(module).__file__)
    except (ImportError, OSError):
        return None
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
            put = getattr(library, f"{prefix}set_num_threads{suffix}", None)
            if get is not None and put is not None:
                return get, put
    return None


# Extension modules by which the libraries of NumPy and of SciPy are found, once they are loaded.
_MODULES = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")
_wanted: int | None = None              # threads, once somebody has said how many


def set_num_threads(n: int) -> None:
    """Let NumPy's BLAS, and SciPy's if it is loaded, use at most `n` threads."""
    global _wanted
    _wanted = n
    for module in _MODULES:
        if module in sys.modules:
            limit(module)


def limit(module: str) -> None:
    """Let the library of a module use as many threads as is wanted, once it is loaded."""
    found = controls(module) if _wanted is not None else None
    if found is None:
        return
    if module == _numpy.module and _numpy.depth:
        _numpy.before = _wanted             # in force when it is left
    else:
        found[1](_wanted)


class _OneThread:
    """A context in which a library computes by one thread; the outermost one restores."""

    def __init__(self, module: str) -> None:
        self.module, self.depth, self.before, self.lock = module, 0, 1, threading.Lock()

    def __enter__(self) -> None:
        found = controls(self.module)
        if found is not None:
            with self.lock:
                self.depth += 1
                if self.depth == 1:
                    self.before = found[0]()
                    found[1](1)

    def __exit__(self, *_: Any) -> None:
        found = controls(self.module)
        if found is not None:
            with self.lock:
                self.depth -= 1
                if not self.depth:
                    found[1](self.before)


_numpy = _OneThread("numpy.linalg._umath_linalg")
_FREE: Any = contextlib.nullcontext()


def one_thread() -> Any:
    """The context in which NumPy's BLAS computes by one thread, for products whose panels our own
    threads compute; None where its threads can't be limited."""
    return _numpy if controls(_numpy.module) is not None else None


def _small(arrays: Any) -> bool:
    return all(max(a.shape[-2:], default=0) <= SMALL for a in arrays)


def numpy_for(*arrays: np.ndarray) -> Any:
    """A context for calls of NumPy's LAPACK with these matrices."""
    return _numpy if _small(arrays) else _FREE
