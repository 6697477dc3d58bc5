"""flambeau: PyTorch's tensors and automatic differentiation, in Python on NumPy.

>>> import flambeau
>>> x = flambeau.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x ** 2).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from __future__ import annotations

import importlib
import importlib.util
from math import e, inf, nan, pi
from types import ModuleType
from typing import Any

from flambeau.core import dtypes as _dtypes
from flambeau.core import op as _op
from flambeau.core import type_info as _type_info
from flambeau.core.autograd import engine as _engine
from flambeau.core.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from flambeau.core.devices import device, get_default_device, set_default_device
from flambeau.core.dtypes import dtype, get_default_dtype, set_default_dtype
from flambeau.core.modes import is_grad_enabled, is_inference_mode_enabled
from flambeau.core.shapes import Size
from flambeau.core.tensor import Tensor
from flambeau.core.type_info import finfo, iinfo, layout, memory_format, qscheme
from flambeau.ops import load as _load_ops

for _name in ("uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex32 "
              "complex64 complex128 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
              "float8_e5m2fnuz float8_e8m0fnu strided sparse_coo sparse_csr sparse_csc sparse_bsr "
              "sparse_bsc jagged contiguous_format preserve_format channels_last channels_last_3d "
              "per_tensor_affine per_channel_affine per_tensor_symmetric "
              "per_channel_symmetric per_channel_affine_float_qparams").split():
    globals()[_name] = getattr(_dtypes, _name, None) or getattr(_type_info, _name)
bool = _dtypes.bool_
globals().update(_dtypes.ALIASES)
globals().update(_op.public["torch"])
newaxis, _mkldnn = None, _type_info.mkldnn

_engine.calibrate()
del globals()["ops"]        # the package of families: users see the ops of PyTorch's dispatcher

_LAZY = ("_C", "_VF", "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda",
         "distributed", "distributions", "export", "fft", "func", "futures", "fx", "hub", "jit",
         "library", "linalg", "masked", "mps", "mtia", "multiprocessing", "nested", "nn", "numa",
         "optim", "overrides", "package", "profiler", "random", "serialization",
         "signal", "sparse", "special", "storage", "testing", "torch_version", "utils",
         "version", "xpu")
_NOT_EXPORTED = ("Any", "ModuleType", "annotations")


def __getattr__(name: str) -> Any:
    """Subpackages are imported when they are first used."""
    if name == "__all__":           # what `from flambeau import *` gives
        own = importlib.import_module("flambeau")
        return [each for each in __dir__() if each[0] != "_" and each not in _NOT_EXPORTED
                and not isinstance(getattr(own, each), ModuleType)]
    if name in _LAZY:
        return importlib.import_module(f"flambeau.{name}")
    from flambeau._support.lazy.names import find
    found = find(name)
    if found is not None:
        globals()[name] = found
        return found
    known = _op.public["torch"]
    if name not in known and importlib.util.find_spec(f"flambeau.{name}") is not None:
        return importlib.import_module(f"flambeau.{name}")
    if name[:2] != "__" and (name in known or _load_ops(lambda: name in known)):
        globals()[name] = known[name]
        return known[name]
    if name[:1] == "_" and name[:2] != "__":
        private = importlib.import_module("flambeau._ops").private_function(name)
        if private is not None:
            globals()[name] = private
            return private
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from flambeau._support.lazy.names import PLACES
    _load_ops()
    return sorted({*globals(), *_op.public["torch"], *_LAZY, *PLACES})
