"""Modules that compute on quantised tensors."""
from flambeau._support.lazy.modules import lazy_modules
from flambeau.ao.nn.quantized.modules import *
from flambeau.ao.nn.quantized.modules import MaxPool2d as MaxPool2d
from flambeau.ao.nn.quantized.modules import __all__ as _modules

__all__ = [*_modules]
__getattr__ = lazy_modules(__name__, "dynamic", "functional", "reference")
