"""Calls of NumPy that neither obey nor change the user's ``np.errstate``, and never warn.

NumPy keeps its floating-point error handling in a context variable. Setting that variable around
a call costs a tenth of ``with np.errstate(...)``; where a NumPy has no such variable, the public
context manager does the same.
"""

import numpy as np

try:
    from numpy._core import umath

    _extobj_contextvar, _make_extobj = umath._extobj_contextvar, umath._make_extobj

    IGNORE = _make_extobj(all="ignore")
except (ImportError, AttributeError, TypeError):  # a NumPy that keeps it elsewhere
    _extobj_contextvar = IGNORE = None


def _named_as(function, silenced):
    """What `functools.wraps` does, of which only this much is needed: it is done hundreds of times
    when flambeau is imported."""
    silenced.__name__ = getattr(function, "__name__", "silenced")
    silenced.__doc__, silenced.__wrapped__ = function.__doc__, function
    return silenced


if _extobj_contextvar is not None:

    def quiet(function):
        """`function`, called while floating-point errors are ignored."""
        enter, leave = _extobj_contextvar.set, _extobj_contextvar.reset

        def silenced(*args):
            token = enter(IGNORE)
            try:
                return function(*args)
            finally:
                leave(token)

        return _named_as(function, silenced)

else:

    def quiet(function):
        """`function`, called while floating-point errors are ignored."""

        def silenced(*args):
            with np.errstate(all="ignore"):
                return function(*args)

        return _named_as(function, silenced)
