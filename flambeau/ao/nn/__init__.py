"""Modules of quantised networks, and of networks on the way there."""
from flambeau._support.lazy.modules import lazy_modules

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]
__getattr__ = lazy_modules(__name__, *__all__)
