"""Types of elements for which PyTorch has no kernel of an op, although ours could compute them.

A program that asks for one is told so, as PyTorch tells it. The table is by ops' names in
`flambeau.core.op.table`; a row has the name of PyTorch's kernel, which the message cites, and the
kinds of types that are not among those it is compiled for.
"""

import functools

import numpy as np

from .reference import type_title

# The kinds of a row, and the characters of their dtypes: b(ool), B(yte), i(ntegers of 8, 16 and
# 32 bits), l(ong), U(nsigned of 16 bits and more), e (half types), f(loats), c(omplex),
# W (complex32), 8 (float8).
CHARACTERS = {"b": "?", "B": "B", "i": "bhi", "l": "lq", "U": "HILQ", "e": "eE", "f": "fd",
              "c": "FD", "W": "O", "8": "45GCW"}


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


# ---- the table ----------------------------------------------------------------------------------

def _flip_name(self, dims, *_):
    """Whole rows are copied; other elements are turned around one by one."""
    long = [i for i in range(self.ndim) if self.shape[i] > 1]
    turned = set(dims).intersection(long)
    rows = long and self.strides[long[-1]] == self.itemsize and long[-1] not in turned
    return "flip_cpu" if turned and not rows else ""


def _reduce_name(self, index, src, dim, reduce, include_self=True, *_):
    if not include_self:
        return "scatter_reduce_exclude_input_init"
    return "scatter_gather_tensor_cpu" + ("" if reduce in ("sum", "prod") else f"_reduce_{reduce}")


def _slices_name(self, *_):
    return "index_select" if self.ndim < 2 else ""


def _add_name(self, index, source, dim, alpha=1, *_):
    if self.ndim < 2:
        return "index_add_"
    whole = alpha == 1 and dim in (0, self.ndim - 1)
    return "scatter_gather_tensor_cpu" if whole else "add_stub"


def unless_one(name):
    """Of a single element these kernels are not asked."""
    return lambda self, *_: name if self.ndim else ""


REFUSED = {name: [(characters(kinds), said)] for name, said, kinds in (
    ("flip", _flip_name, "UW8"), ("scatter_reduce", _reduce_name, "UW8"),
    ("index_select", _slices_name, "U"), ("index_add", _add_name, "U8"))}


def refused_by(name):
    """The characters of the dtypes that the op of that name refuses."""
    return "".join([characters for characters, _ in REFUSED.get(name, ())])


def kernel_name(name, dtype):
    """What PyTorch calls the kernel of that op that would take such elements; "" if not known."""
    rows = REFUSED.get(name, ())
    return next((said for characters, said in rows if dtype.char in characters), "")


def kernel_of(op):
    """The kernel of `op`, which refuses what the table says; itself where that is nothing."""
    refused = characters(op.refuses[1]) if op.refuses else refused_by(op.name)
    if not refused:
        return op.kernel

    @functools.wraps(op.kernel)
    def kernel(first, *rest):
        x = first[0] if op.variadic else first
        if x.dtype.char in refused:
            said = op.refuses[0] if op.refuses else kernel_name(op.name, x.dtype)
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
    refused = characters(op.refuses[1]) if op.refuses else refused_by(op.name)
    refused += _NOT_FLOATING * getattr(op, "floating", False)
    return sum(1 << i for i, character in enumerate(_NATIVE) if character not in refused)
