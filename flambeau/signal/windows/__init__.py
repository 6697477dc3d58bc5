"""Window functions, symmetric by default.

>>> import flambeau
>>> flambeau.signal.windows.bartlett(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""
from flambeau._support.lazy.modules import stand_in
from flambeau.core.op import public as _public
from flambeau.ops import load as _load

_load()
globals().update(_public["signal.windows"])
__all__ = sorted(_public["signal.windows"])
stand_in("signal.windows.windows", *_public["signal.windows"].values())
