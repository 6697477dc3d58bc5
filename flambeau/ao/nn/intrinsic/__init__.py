"""Modules that stand for several, which quantisation treats as one."""
from flambeau._support.lazy.modules import lazy_modules
from flambeau.ao.nn.intrinsic.modules import *
from flambeau.ao.nn.intrinsic.modules import __all__ as _modules
from flambeau.ao.nn.intrinsic.modules import _FusedModule as _FusedModule

__all__ = [*_modules]
__getattr__ = lazy_modules(__name__, "qat", "quantized")
