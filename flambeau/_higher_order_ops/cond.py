"""`torch.cond` in PyTorch's place for it."""
from flambeau.control_flow import cond

__all__ = ["cond"]
