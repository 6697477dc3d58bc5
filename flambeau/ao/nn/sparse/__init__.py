"""Modules with weights in which blocks of numbers are zero."""
from flambeau._support.lazy.modules import lazy_modules

__getattr__ = lazy_modules(__name__, "quantized")
