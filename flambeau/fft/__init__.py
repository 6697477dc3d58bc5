"""Discrete Fourier transforms.

>>> import flambeau
>>> x = flambeau.tensor([1.0, 2.0, 3.0])
>>> flambeau.allclose(flambeau.fft.irfft(flambeau.fft.rfft(x), 3), x)
True
"""
from flambeau.core.op import public as _public
from flambeau.core.tensor import Tensor as Tensor
from flambeau.ops import load as _load

_load()
globals().update(_public["fft"])
__all__ = sorted({"Tensor", *_public["fft"]} - {"hfft2", "hfftn", "ihfft2", "ihfftn"})
