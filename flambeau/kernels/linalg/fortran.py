"""The routines of LAPACK and BLAS, in the library that NumPy itself is linked with.

`numpy.linalg` has gufuncs for some of them; all others lie in the same library, where `ctypes`
finds them by their Fortran names. Where NumPy has a library of another kind, SciPy's are taken.

    >>> import numpy as np
    >>> a, info = np.array([[[4.0]]]), integers(1)
    >>> call_each("potrf", a.dtype, b"L", 1, a, 1, info)
    >>> a.tolist(), info.tolist()
    ([[[2.0]]], [0])
"""

import ctypes
import functools
import glob
import importlib
import os

import numpy as np

from flambeau.kernels._extension import native as _native

# how builds name a routine: NumPy's own wheels, other 64-bit integers, Apple's, everything else
_SPELLINGS = ("scipy_{}_64_", "{}_64_", "{}64_", "{}$NEWLAPACK$ILP64", "{}$NEWLAPACK", "{}_")
_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}


class _Library:
    """Finds routines; `integer` is the NumPy type of the integers that they take."""

    def find(self, name):
        raise NotImplementedError


class _NumPys(_Library):
    def __init__(self, handle, spelling):
        self.handle, self.spelling = handle, spelling
        version = np.full(3, -1, np.int64)
        handle[spelling.format("ilaver")](*[ctypes.c_void_p(at) for at in _addresses(version)])
        self.integer = np.int64 if (version >= 0).all() else np.int32   # half of -1 is left

    def find(self, name):
        return self.handle[self.spelling.format(name)]


class _SciPys(_Library):
    integer = np.int32

    def find(self, name):
        for module in ("cython_lapack", "cython_blas"):
            capsules = importlib.import_module(f"scipy.linalg.{module}").__pyx_capi__
            if name in capsules:
                return ctypes.CFUNCTYPE(None)(_pointer_in(capsules[name]))
        raise AttributeError(name)


def _pointer_in(capsule):
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [
        ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def _addresses(array):
    """Where each item along the first dimension begins."""
    first, step = array.ctypes.data, array.strides[0]
    return range(first, first + step * len(array), step) if step else [first] * len(array)


def _files():
    """Of NumPy: an extension module that is linked with the library, and then the library, which
    Windows does not find through the module."""
    yield importlib.import_module("numpy.linalg._umath_linalg").__file__
    folder = os.path.dirname(np.__file__)
    yield from glob.glob(os.path.join(folder + ".libs", "*openblas*"))


@functools.cache
def library():
    """Where routines are found. ImportError where neither NumPy nor SciPy has them."""
    for file in _files():
        try:
            handle = ctypes.CDLL(file)
        except OSError:
            continue
        for spelling in _SPELLINGS:
            if hasattr(handle, spelling.format("ilaver")):
                return _NumPys(handle, spelling)
    try:
        importlib.import_module("scipy.linalg")
    except ImportError:
        raise ImportError(
            "this function needs LAPACK, which this build of NumPy does not have: install SciPy, "
            "by `pip install 'flambeau[scipy]'`", name="scipy") from None
    return _SciPys()


@functools.cache
def _routine(name):
    """A routine for `ctypes`, and its address."""
    function = library().find(name)
    function.restype = None
    return function, ctypes.cast(function, ctypes.c_void_p).value


def integers(*shape):
    """An array of zeros for integers that routines write."""
    return np.zeros(shape, library().integer)


def call_each(name, dtype, *arguments):
    """Call a routine once for each item of a batch.

    An argument is a letter, as bytes; an integer; an array, whose first dimension is the batch; or
    an array that all items share, such as a workspace, in a tuple of its own. The routine is the
    one for elements of `dtype`.
    """
    function, address = _routine(_LETTERS[dtype.char] + name)
    if _native_call is not None:
        _native_call(address, library().integer is np.int64, arguments)
    else:
        _call_each(function, arguments)


def _call_each(function, arguments):
    """`call_each` by ctypes."""
    integer = ctypes.c_int64 if library().integer is np.int64 else ctypes.c_int32
    given, arrays = [], []
    for i, a in enumerate(arguments):
        if type(a) is int:
            given.append(ctypes.byref(integer(a)))
        elif type(a) is bytes:
            given.append(ctypes.c_char_p(a))
        elif type(a) is tuple:
            given.append(ctypes.c_void_p(a[0].ctypes.data))
        else:
            arrays.append((i, _addresses(a)))
            given.append(None)
    letters = sum(type(a) is bytes for a in arguments)
    given += [ctypes.c_size_t(1)] * letters     # Fortran passes the lengths of strings at the end
    for item in range(len(arrays[0][1])):
        for i, places in arrays:
            given[i] = ctypes.c_void_p(places[item])
        function(*given)


def address(name, dtype):
    """Where the routine for elements of `dtype` is, and whether its integers have 64 bits."""
    return _routine(_LETTERS[dtype.char] + name)[1], library().integer is np.int64


_native_call = getattr(_native, "fortran_call", None)
