"""Declaring kernels: choice of implementation, and narrow floats.

A kernel is written once in NumPy, readable, and declared with `@kernel`. Where the C++ extension
holds a function of the same name, that one is tried first; it answers `NotImplemented` to arguments
that it has no loop for. Then the NumPy function, the twin, does the work. `f.reference` is always
the twin.

Half floats (float16, bfloat16, float8) are computed in float32 and rounded once, at the end; in
kernels declared with `stepwise`, after every step of arithmetic.

A pointwise kernel is called ``k(x[, y[, z]][, out])`` with arrays of one dtype, or Python numbers,
which take the arrays' dtype. It returns an array, of that dtype unless its declaration says
otherwise. `pointwise` does what all of them share; a body is the mathematics, on arrays.
"""

import functools
import inspect

import numpy as np

from flambeau.kernels import _extension
from flambeau.kernels._quiet import quiet
from flambeau.kernels.dtypes import (
    SCALARS,
    as_dtype,
    compute_dtype,
    float_astype,
    kind_of,
    no_kernel,
    real_dtype,
    silent_astype,
)
from flambeau.kernels.moving import views

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


def kernel_with_float32_results(*kept):
    """As `kernel`; results at these positions stay float32 for narrow inputs (statistics)."""
    return lambda twin: _declare(twin, kept=kept)


def mover(twin):
    """As `kernel`, for functions that only move or compare elements: no dtype needs widening."""
    return _declare(twin, widens=False)


def kernel_with_narrow(narrow):
    """As `kernel`; narrow floats are for `narrow`, which rounds where PyTorch does."""
    return lambda twin: _declare(twin, special=narrow)


def stepwise(twin):
    """As `kernel`, for formulas that PyTorch computes in the type of the input: narrow floats are
    rounded after every step."""
    return _declare(twin, widens=False)


def updater(twin):
    """As `kernel`, for functions that change their first argument and return it."""
    return _declare(twin, updates=True)


def laid_out_by(operands, widens=True):
    """As `kernel`, or `stepwise` unless it `widens`, for functions of each element alone:
    `operands` gives the arrays that say how the result lies in memory, the first one before the
    others."""
    return lambda twin: _declare(twin, widens=widens, operands=operands)


def _declare(twin, kept=(), widens=True, updates=False, special=None, operands=None):
    fast = native(twin.__name__)
    complete = _completer(twin)

    def wide(run, args):
        narrow = (
            next((a.dtype for a in args if type(a) is np.ndarray and is_narrow(a.dtype)), None)
            if widens else None)
        if narrow is None:
            return run(*args)
        if special is not None:
            return special(*args)
        result = run(
            *(float_astype(a, np.float32) if type(a) is np.ndarray and is_narrow(a.dtype) else a
              for a in args)
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

    if operands:
        reference, run = _in_memory_order(reference, operands), _in_memory_order(run, operands)
    if fast:
        run = _extension.native.network_front(fast, run, len(inspect.signature(twin).parameters))
    run = functools.wraps(twin)(run if fast else reference)
    run.reference = functools.wraps(twin)(reference)
    run.native = fast
    return run


def _in_memory_order(function, operands):
    """The function, which sees arrays by rows, with their dimensions in the order of memory."""
    def run(*args):
        arrays = operands(*args)
        shape = arrays[0].shape
        if not shape or all(x.flags.c_contiguous for x in arrays):
            return function(*args)
        order = views.broadcast_memory_order(shape, *[x.strides for x in arrays])
        result = function(*[
            np.ascontiguousarray(a.transpose(order))
            if isinstance(a, np.ndarray) and a.ndim == len(shape) else a for a in args])
        return views.in_order(result, order) if result.ndim == len(shape) else result
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
        return float_astype(np.asarray(result), dtype)  # which of a 0-d array NumPy makes a number
    return result


# ---- pointwise kernels ---------------------------------------------------------------------------


def pointwise(kinds, returns=None, key=0, stepwise=False, leader=""):
    """Declare a kernel for the dtypes of `kinds`; `returns` is None (the same), bool or "real".

    `key` is the first operand that has the common dtype (`where` has a condition before it).
    Narrow floats are computed in float32; if `stepwise`, in their own type. `leader` is the operand
    whose layout the result takes where they differ, if that is not the first.
    """

    def declare(body):
        parameters = body.__code__.co_varnames[: body.__code__.co_argcount]
        count, defaults = len(parameters), body.__defaults__ or ()
        silent = quiet(body)
        first = parameters.index(leader) if leader else 0

        @functools.wraps(body)
        def kernel(*args, out=None):
            if len(args) > count:
                *args, out = args
            args = [*args, *defaults[len(defaults) + len(args) - count :]]
            if len(args) != count:
                raise TypeError(f"{body.__name__}: expected {count} operands, got {len(args)}")
            dtype = next((a.dtype for a in args[key:] if not isinstance(a, SCALARS)), None)
            if dtype is None:
                args = [np.asarray(a) for a in args]
                dtype = np.result_type(*args[key:])
            if kind_of(dtype) not in tuple(kinds):
                raise no_kernel(body.__name__, dtype)
            steps = stepwise or (dtype.kind == "W" and count > 2)  # as complex<Half> does in C++
            compute = dtype if steps else compute_dtype(dtype)
            args = [as_dtype(a, compute) if isinstance(a, SCALARS)
                    else a if i < key or a.dtype == compute else silent_astype(a, compute) for i,
                    a in enumerate(args)]
            result = silent(*args)
            want = {None: dtype, "real": real_dtype(dtype), bool: np.dtype(bool)}[returns]
            if result.dtype != want:
                result = silent_astype(result, want)
            if out is None:
                result = _in_layout_of([args[first], *args[:first], *args[first + 1:]], result)
                return np.asarray(result) if isinstance(result, np.generic) else result
            if result.ndim > out.ndim:  # which NumPy would store, where the first extents are 1
                raise ValueError("the result does not fit the shape of out")
            quiet(np.copyto)(out, result, "unsafe")
            return out

        kernel.nin, kernel.kinds, kernel.returns, kernel.leader = count, kinds, returns, first
        return kernel

    return declare


def _in_layout_of(operands, result):
    """The result with its dimensions in memory as the operands have them, the first of all."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    if result.ndim < 2 or all(x.flags.c_contiguous and (result.size or x.shape == result.shape)
                              for x in arrays):
        return result
    return views.arranged(result, views.broadcast_memory_order(
        result.shape, *[views.expand(x, result.shape).strides for x in arrays]))


def special(name):
    """A function of scipy.special where SciPy is installed, else ours of that name."""
    try:
        import scipy.special
    except ImportError:
        from flambeau.kernels.pointwise import special_functions

        return special_functions.find(name)
    return getattr(scipy.special, name)


def named(kernel, name):
    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def unary(function, kinds, returns=None):
    def body(x):
        return function(x)

    return pointwise(kinds, returns)(named(body, function.__name__))


def binary(function, kinds, returns=None):
    def body(x, y):
        return function(x, y)

    return pointwise(kinds, returns)(named(body, function.__name__))


def names_of(module):
    """The pointwise kernels of a module."""
    return [name for name, value in vars(module).items() if hasattr(value, "kinds")]
