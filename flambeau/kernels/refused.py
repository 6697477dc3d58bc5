"""Types of elements for which PyTorch has no kernel of an op, although ours could compute them.

A program that asks for one is told so, as PyTorch tells it. A declaration says:

    refuses=("erf_cpu", "cW")       the name of PyTorch's kernel, which the error cites, and the
                                    kinds of types for which that is not compiled, by letter
    refused_as={"c": "erf does …"}  of a pointwise op: the sentence said of a kind in its place

`refuse` is what a function calls that checks its argument itself. That is all that refusing means
here: an argument that fits no signature is `schema/errors.py`'s, a tensor of another backend (such
as a sparse one) `dispatch/backend_errors.py`'s.
"""

import functools
from math import prod

import numpy as np

from flambeau.kernels.dtypes import type_title

# The kinds, and the characters of their dtypes: b(ool), B(yte), i(ntegers of 8, 16 and
# 32 bits), l(ong), U(nsigned of 16 bits and more), e (half types), f(loats), c(omplex),
# W (complex32), 8 (float8), 0 (of those float8_e8m0fnu).
CHARACTERS = {"b": "?", "B": "B", "i": "bhi", "l": "lq", "U": "HILQ", "e": "eE", "f": "fd",
              "c": "FD", "W": "O", "8": "45GCW", "0": "W"}


@functools.cache
def characters(kinds):
    """Those of the dtypes of some kinds."""
    return "".join([CHARACTERS[kind] for kind in kinds])


def no_kernel(name, dtype):
    """What to raise where PyTorch's kernel of that name does not take a dtype; a name with blanks
    is a sentence, in which `{}` is the type."""
    if " " in name:
        return RuntimeError(name.format(type_title(dtype)))
    return NotImplementedError(f"\"{name}\" not implemented for '{type_title(dtype)}'")


def refuse(x, kinds, name):
    """Raise that if the elements of `x` are of one of `kinds`."""
    if x.dtype.char in characters(kinds):
        raise no_kernel(name, x.dtype)


def unless_one(name):
    """Of a single element these kernels are not asked."""
    return lambda self, *_: name if self.ndim else ""


def by_one(name, otherwise=""):
    """Multiplied or divided by a single number, float8 would have a kernel of its own; with more
    numbers PyTorch asks the kernel that is said `otherwise`, if any."""
    def said(self, other, *_):
        narrow = self.dtype.char in CHARACTERS["8"] and np.size(other) == 1
        return f"{name}_reduced_float" if narrow else otherwise
    return said


def spread_speaker(name):
    """Who refuses the types of `std`, `var` and these with the mean: the first two have a kernel of
    their own that makes one number out of all. It is asked for sentences before dimensions are."""
    def said(self, *dims):
        if self.dtype.char not in CHARACTERS["8"]:
            family = "std and var" if name in ("std", "var") else name
            return f"{family} only support floating point and complex dtypes"
        if not dims or not self.size or name.endswith("mean"):
            return "std_cpu"
        dim = dims[0] or range(self.ndim)
        alone = prod(n for d, n in enumerate(self.shape) if d not in dim) == 1
        return "std_var_all: Unsupported dtype {}" if alone else "std_cpu"
    return said


def kernel_of(op):
    """The kernel of `op`, with the types that its declaration refuses."""
    if not op.refuses:
        return op.kernel
    said, refused = op.refuses[0], characters(op.refuses[1])

    @functools.wraps(op.kernel)
    def kernel(first, *rest):
        x = first[0] if op.variadic else first
        if x.dtype.char in refused:
            name = said if type(said) is str else said(x, *rest)
            # a sentence is said before PyTorch looks whether a kernel has anything to do
            if name and (" " in name
                         or all(a.size for a in (x, *rest) if type(a) is np.ndarray)):
                raise no_kernel(name, x.dtype)
        return op.kernel(first, *rest)
    return kernel


# The characters of the native kernels' dtypes, in their order: bool, unsigned and signed integers,
# float16, bfloat16, float32, float64, complex64, complex128.
_NATIVE = "?BHILbhileEfdFD"
_NOT_FLOATING = "?BHILbhil"


def native_dtypes(op):
    """The dtypes that an op takes, as bits: calls with others are for the closure. Those of a
    `floating` op are the ones that it need not convert first."""
    refused = characters(op.refuses[1]) if op.refuses else ""
    refused += _NOT_FLOATING * getattr(op, "floating", False)
    return sum(1 << i for i, character in enumerate(_NATIVE) if character not in refused)
