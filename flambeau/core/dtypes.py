"""Element types: torch's names for NumPy's dtypes.

A `dtype` is an interned object; `dtype.numpy` is the `numpy.dtype` that arrays carry. bfloat16 and
the float8 types come from `ml_dtypes`, which is imported when one of them is first used.

    >>> import flambeau
    >>> flambeau.float32.itemsize, flambeau.float32.is_floating_point
    (4, True)
"""
from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from flambeau._support.c_functions import NoArguments, counted, frozen, takes_nothing
from flambeau._support.torch_name import is_named_torch
from flambeau.kernels import set_error_name
from flambeau.kernels.dtypes import type_title

FROM_NUMPY: dict[np.dtype, dtype] = {}      # numpy.dtype -> dtype, for each type that has been used
FLOATING: set[np.dtype] = set()             # numpy dtypes of floating or complex kind
_BY_NAME: dict[str, dtype] = {}

_ABBREVIATIONS = (("complex", "c"), ("float", "f"), ("uint", "u"), ("int", "i"), ("bits", "b"),
                  ("_", ""))


@frozen
@set_error_name("torch.dtype")
class dtype:
    """The type of a tensor's elements, such as `flambeau.float32`."""

    __signature__ = NoArguments()
    name: str
    kind: str                               # b(ool) u(int) i(nt) f(loat) c(omplex)
    _is_signed: bool
    _numpy_name: str
    _library: str

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    @classmethod
    def _made(cls, name: str, kind: str, numpy_name: str, library: str = "numpy") -> dtype:
        self = object.__new__(cls)
        vars(self).update(
            name=name, kind=kind, _numpy_name=numpy_name, _library=library,
            _is_signed=kind in "ifc")
        _BY_NAME[name] = self
        if library == "numpy":
            FROM_NUMPY[self.numpy] = self
        return self

    @cached_property
    def is_floating_point(self) -> bool:
        """Are the elements real numbers with a fraction?"""
        return self.kind == "f"

    @cached_property
    def is_complex(self) -> bool:
        """Are the elements complex numbers?"""
        return self.kind == "c"

    @cached_property
    def abbr(self) -> str:
        """The short name by which graphs show it: `f32`."""
        if self.kind in ("quantized", "packed") and self.name[:4] != "bits":
            return self.name
        short = "b8" if self.name == "bool" else self.name
        for long, letter in _ABBREVIATIONS:
            short = short.replace(long, letter)
        return short if self.kind != "packed" or "x" in short else f"{short}x1"

    @property
    def is_signed(self) -> bool:
        """Can the elements be negative?"""
        if self.kind == "quantized":
            raise RuntimeError("isSignedType not supported for quantized types")
        return self._is_signed

    @cached_property
    def numpy(self) -> np.dtype:
        """The `numpy.dtype` of arrays that hold such elements."""
        if self._library != "numpy":
            try:
                library = import_module(self._library)
            except ModuleNotFoundError as error:
                raise ImportError(f"tensors of dtype {self} need the package {self._library}: "
                                  f"pip install {self._library}", name=error.name) from None
            found = np.dtype(getattr(library, self._numpy_name))
            if self.name == "bfloat16":
                from flambeau import kernels
                kernels.register_bfloat16()
            FROM_NUMPY[found] = self
        else:
            found = np.dtype(self._numpy_name)
        if self.kind in "fc":
            FLOATING.add(found)
        return found

    @cached_property
    def itemsize(self) -> int:
        return self.numpy.itemsize

    @counted
    def to_real(self) -> dtype:
        """The type of such a number's real part."""
        return _REAL.get(self, self)

    @counted
    def to_complex(self) -> dtype:
        """The complex type whose parts have this type."""
        if self.is_complex:
            return self
        if self not in _COMPLEX:
            raise RuntimeError(f"Unknown Complex ScalarType for {type_title(self)}")
        return _COMPLEX[self]

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.name if is_named_torch() else (dtype_by_name, (self.name,))

    def __deepcopy__(self, memo: Any) -> dtype:
        return self

    __copy__: Any = None                    # set below: a dtype is a singleton


dtype.__copy__ = lambda self: self
dtype.__module__ = "torch"


def dtype_by_name(name: str) -> dtype:
    return _BY_NAME.get(name) or getattr(import_module("flambeau.core.narrow_dtypes"), name)


bool_ = dtype._made("bool", "b", "bool")
uint8 = dtype._made("uint8", "u", "uint8")
uint16 = dtype._made("uint16", "u", "uint16")
uint32 = dtype._made("uint32", "u", "uint32")
uint64 = dtype._made("uint64", "u", "uint64")
int8 = dtype._made("int8", "i", "int8")
int16 = dtype._made("int16", "i", "int16")
int32 = dtype._made("int32", "i", "int32")
int64 = dtype._made("int64", "i", "int64")
float16 = dtype._made("float16", "f", "float16")
float32 = dtype._made("float32", "f", "float32")
float64 = dtype._made("float64", "f", "float64")
complex64 = dtype._made("complex64", "c", "complex64")
complex128 = dtype._made("complex128", "c", "complex128")
bfloat16 = dtype._made("bfloat16", "f", "bfloat16", "ml_dtypes")
float8_e4m3fn = dtype._made("float8_e4m3fn", "f", "float8_e4m3fn", "ml_dtypes")
float8_e5m2 = dtype._made("float8_e5m2", "f", "float8_e5m2", "ml_dtypes")
float8_e4m3fnuz = dtype._made("float8_e4m3fnuz", "f", "float8_e4m3fnuz", "ml_dtypes")
float8_e5m2fnuz = dtype._made("float8_e5m2fnuz", "f", "float8_e5m2fnuz", "ml_dtypes")
float8_e8m0fnu = dtype._made("float8_e8m0fnu", "f", "float8_e8m0fnu", "ml_dtypes")
complex32 = dtype._made("complex32", "c", "complex32", "flambeau.core.narrow_dtypes")

_REAL = {complex64: float32, complex128: float64, complex32: float16}
_COMPLEX = {float16: complex32, float32: complex64, float64: complex128, bfloat16: complex64}
ALIASES = {"float": float32, "double": float64, "half": float16, "short": int16, "int": int32,
           "long": int64, "cfloat": complex64, "cdouble": complex128, "chalf": complex32}


def from_numpy_dtype(array_type: Any) -> dtype:
    """The `dtype` of arrays with this `numpy.dtype`; TypeError for one torch does not have."""
    array_type = np.dtype(array_type)
    found = FROM_NUMPY.get(array_type) or FROM_NUMPY.get(array_type.newbyteorder("="))
    if found is None and array_type.name in _BY_NAME:
        found = _BY_NAME[array_type.name]
        _ = found.numpy                     # loads and registers it
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array_type.type.__name__}. The only "
            "supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
            "int16, int8, uint64, uint32, uint16, uint8, and bool.")
    return found


class _Defaults:
    """The process-wide default for new floating-point tensors."""

    float: dtype = float32
    numpy: np.dtype = float32.numpy


@takes_nothing
def get_default_dtype() -> dtype:
    """The type that `flambeau.tensor(1.0)` has: float32 unless set otherwise."""
    return _Defaults.float


def set_default_dtype(d: dtype, /) -> None:
    """Make `d`, a floating-point dtype, the type of new floating-point tensors."""
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the "
                        "default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _Defaults.float, _Defaults.numpy = d, d.numpy


def default_float() -> np.dtype:
    """The default floating-point type, as NumPy names it."""
    return _Defaults.numpy


def default_complex() -> np.dtype:
    return _Defaults.float.to_complex().numpy


def as_numpy_dtype(d: Any) -> np.dtype | None:
    """A `dtype=` argument as NumPy names it; None stays None."""
    if d is None:
        return None
    if type(d) is dtype:
        return d.numpy
    if d in (float, int, bool, complex):
        return {float: float64, int: int64, bool: bool_, complex: complex128}[d].numpy
    raise TypeError(f"dtype must be a torch.dtype, such as torch.float32, not {d!r}")
