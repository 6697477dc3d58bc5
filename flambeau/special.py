"""Special functions, as `torch.special` names them."""
from flambeau import ops as _ops
from flambeau.core.op import public

_ops.load()
globals().update(public["special"])
__all__ = sorted(public["special"])
