"""Special functions, as `torch.special` names them."""
from flambeau.core.op import public

globals().update(public["special"])
__all__ = sorted(public["special"])
