"""Calls of NumPy that neither obey nor change the user's ``np.errstate``, and never warn.

NumPy keeps its floating-point error handling in a context variable. Setting that variable around
a call costs a tenth of ``with np.errstate(...)``; where a NumPy has no such variable, the public
context manager does the same.
"""

import functools

import numpy as np

try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    IGNORE = _make_extobj(all="ignore")
except (ImportError, TypeError):  # a NumPy that keeps it elsewhere
    _extobj_contextvar = IGNORE = None


if _extobj_contextvar is not None:

    def quiet(function):
        """`function`, called while floating-point errors are ignored."""
        enter, leave = _extobj_contextvar.set, _extobj_contextvar.reset

        @functools.wraps(function, updated=())
        def silenced(*args):
            token = enter(IGNORE)
            try:
                return function(*args)
            finally:
                leave(token)

        return silenced

else:

    def quiet(function):
        """`function`, called while floating-point errors are ignored."""

        @functools.wraps(function, updated=())
        def silenced(*args):
            with np.errstate(all="ignore"):
                return function(*args)

        return silenced
