"""Linear algebra over any leading dimensions: factorisations, equations, norms.

>>> import flambeau
>>> flambeau.linalg.norm(flambeau.tensor([3.0, 4.0]))
tensor(5.)
"""
from flambeau.core.op import public as _public
from flambeau.kernels.linalg.lapack import LinAlgError
from flambeau.ops import load as _load

_load()
globals().update(_public["linalg"])
__all__ = sorted([*_public["linalg"], "LinAlgError"])
