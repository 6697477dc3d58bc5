"""Limits of number types, and the named constants that describe a tensor's form."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from flambeau._support.c_functions import NoArguments, frozen
from flambeau._support.torch_name import is_named_torch
from flambeau.core import late_bound
from flambeau.core.dtypes import bool_, complex128, dtype, float64, get_default_dtype, int64
from flambeau.kernels import set_error_name

_OF_PYTHON: Any = {bool: bool_, int: int64, float: float64, complex: complex128}


@frozen
class _Info:
    """What `finfo` and `iinfo` share: the attributes of NumPy's object of that name."""

    bits: int

    def __init__(self, type: dtype | None = None):
        self._type = _OF_PYTHON.get(type) or type or get_default_dtype()
        self._note(bits=self._type.itemsize * 8, dtype=self._type.name)

    def _note(self, **facts: Any) -> None:
        vars(self).update(facts)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._type is other._type

    __hash__ = None


def _type_given(schemas: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    plain = len(args) == 1 and type(args[0]) is dtype and not kwargs
    return args if plain else late_bound.bound(schemas, args, kwargs)


@cache
def _floating_limits(of: dtype) -> dict[str, Any]:
    if of._library == "numpy":
        limits = np.finfo(of.numpy)
    else:
        import ml_dtypes
        limits = ml_dtypes.finfo(of.numpy)
    bits = of.itemsize * 8
    halved = of.name == "float8_e5m2fnuz"           # as PyTorch has it
    return {"bits": bits, "dtype": of.name, "min": float(limits.min), "max": float(limits.max),
            "eps": float(limits.eps) / (2 if halved else 1), "tiny": float(limits.smallest_normal),
            "smallest_normal": float(limits.smallest_normal),
            "resolution": 1.0 if bits == 8 else 10.0 ** -limits.precision}


@cache
def _integer_limits(of: dtype) -> dict[str, Any]:
    limits = np.iinfo(of.numpy)
    return {"min": int(limits.min), "max": int(limits.max)}


@set_error_name("torch.finfo")
class finfo(_Info):
    """Limits of a floating-point type: eps, max, min, tiny, smallest_normal, resolution, bits."""

    eps: float
    max: float
    min: float
    tiny: float
    smallest_normal: float
    resolution: float

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*_type_given(("finfo(ScalarType type)", "finfo()"), args, kwargs))
        if self._type.kind not in "fc":
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo "
                            "to handle 'torch.finfo'")
        self._type = self._type.to_real()
        vars(self).update(_floating_limits(self._type))

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
                f"dtype={self._type.name})")


@set_error_name("torch.iinfo")
class iinfo(_Info):
    """Limits of an integer type: min, max, bits."""

    min: int
    max: int

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*_type_given(("iinfo(ScalarType type)",), args, kwargs))
        if self._type.kind == "b":
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if self._type.kind not in "ui":
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to "
                            "handle 'torch.iinfo'")
        vars(self).update(_integer_limits(self._type))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self._type.name})"


@frozen
class _Named:
    """A constant that prints as torch's: a layout, a memory format, a quantisation scheme."""

    __signature__ = NoArguments()
    name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    @classmethod
    def _made(cls, name: str) -> Any:
        self = object.__new__(cls)
        vars(self)["name"] = name
        return self

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.name if is_named_torch() else (_constant, (self.name,))

    def __deepcopy__(self, memo: Any) -> _Named:
        return self


def _constant(name: str) -> Any:
    return globals()[name]


@set_error_name("torch.layout")
class layout(_Named):
    """How a tensor's elements lie in memory: `strided`, or one of the sparse forms."""


@set_error_name("torch.memory_format")
class memory_format(_Named):
    """The order of dimensions in memory that an op keeps or makes."""


@set_error_name("torch.qscheme")
class qscheme(_Named):
    """How a quantised tensor maps integers to numbers."""


strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, jagged, mkldnn = (
    layout._made(n) for n in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr",
                              "sparse_bsc", "jagged", "_mkldnn"))
contiguous_format, preserve_format, channels_last, channels_last_3d = (
    memory_format._made(n) for n in ("contiguous_format", "preserve_format", "channels_last",
                                     "channels_last_3d"))
CHANNELS_LAST = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric, \
    per_channel_affine_float_qparams = (
        qscheme._made(n) for n in (
            "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
            "per_channel_symmetric", "per_channel_affine_float_qparams"))
for _cls in (finfo, iinfo, layout, memory_format, qscheme):
    _cls.__module__ = "torch"
