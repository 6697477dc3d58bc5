"""Special functions, as `torch.special` names them."""
from flambeau.core.op import public
from flambeau.core.tensor import Tensor as Tensor
from flambeau.ops import load as _load

_load()
globals().update(public["special"])
__all__ = sorted(public["special"])
