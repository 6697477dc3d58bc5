"""What the kernels of neural networks share: choice of implementation, and narrow floats.

A kernel is written once in NumPy, readable, and declared with `@kernel`. Where the C++ extension
holds a function of the same name, that one is tried first; it answers `NotImplemented` to arguments
that it has no loop for. Then the NumPy function, the twin, does the work. `f.reference` is always
the twin.

Half floats (float16, bfloat16, float8) are computed in float32 and rounded once, at the end; in
kernels declared with `stepwise`, after every step of arithmetic.
"""

import functools
import inspect

import numpy as np

from flambeau.kernels import _extension

_WIDE = frozenset("?bBhHiIlLqQfdgFDG")


def native(name):
    """The compiled function of that name, or None."""
    return getattr(_extension.native, f"network_{name}", None)


def checked(name):
    """The compiled kernel of that name that checks its arguments itself, or None: it raises Misfit
    for all that is not plain, fits badly, or has another type than float and double."""
    return native(f"checked_{name}")


def declining(kernel):
    """The compiled kernel in front of `kernel`, which raises Misfit for what it has no loop for,
    or None."""
    names = inspect.signature(kernel).parameters
    return kernel.native and _extension.native.network_front(kernel.native, _misfit, len(names))


def _misfit(*_):
    raise _extension.Misfit


def is_narrow(dtype):
    """Whether numbers of this dtype are computed in float32: every float of two bytes or fewer."""
    return dtype.char not in _WIDE and dtype.kind in "fV"


def kernel(twin):
    """Declare the NumPy function `twin` as a kernel."""
    return _declare(twin)


def kernel_keeping(*kept):
    """As `kernel`; results at these positions stay float32 for narrow inputs (statistics)."""
    return lambda twin: _declare(twin, kept=kept)


def mover(twin):
    """As `kernel`, for functions that only move or compare elements: no dtype needs widening."""
    return _declare(twin, widens=False)


def kernel_but(narrow):
    """As `kernel`; narrow floats are for `narrow`, which rounds where PyTorch does."""
    return lambda twin: _declare(twin, special=narrow)


def stepwise(twin):
    """As `kernel`, for formulas that PyTorch computes in the type of the input: narrow floats are
    rounded after every step."""
    return _declare(twin, widens=False)


def updater(twin):
    """As `kernel`, for functions that change their first argument and return it."""
    return _declare(twin, updates=True)


def _declare(twin, kept=(), widens=True, updates=False, special=None):
    fast = native(twin.__name__)
    complete = _completer(twin)

    def wide(run, args):
        narrow = (
            next((a.dtype for a in args if type(a) is np.ndarray and is_narrow(a.dtype)), None)
            if widens
            else None
        )
        if narrow is None:
            return run(*args)
        if special is not None:
            return special(*args)
        result = run(
            *(
                a.astype(np.float32) if type(a) is np.ndarray and is_narrow(a.dtype) else a
                for a in args
            )
        )
        if updates:
            args[0][...] = result
            return args[0]
        if type(result) is not tuple:
            return _round(result, narrow)
        return tuple(r if i in kept else _round(r, narrow) for i, r in enumerate(result))

    def either(*args):
        result = fast(*args)
        return twin(*args) if result is NotImplemented else result

    def reference(*args, **keywords):
        with np.errstate(all="ignore"):
            return wide(twin, complete(args, keywords))

    def run(*args, **keywords):
        args = complete(args, keywords)
        result = fast(*args)
        if result is not NotImplemented:
            return result
        with np.errstate(all="ignore"):
            return wide(either, args)

    if fast:
        run = _extension.native.network_front(fast, run, len(inspect.signature(twin).parameters))
    run = functools.wraps(twin)(run if fast else reference)
    run.reference = functools.wraps(twin)(reference)
    run.native = fast
    return run


def _completer(twin):
    """A function that makes a call's arguments positional and complete."""
    names = list(inspect.signature(twin).parameters)
    defaults = dict(zip(reversed(names), reversed(twin.__defaults__ or ())))
    count = len(names)

    def complete(args, keywords):
        if len(args) == count and not keywords:
            return args
        given = {**defaults, **dict(zip(names, args)), **keywords}
        if len(args) > count or len(given) != count:
            return inspect.signature(twin).bind(*args, **keywords).args
        return tuple(given[name] for name in names)

    return complete


def _round(result, dtype):
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype == np.float32:
        return np.asarray(result).astype(dtype)  # which of a 0-d array NumPy makes a number
    return result
