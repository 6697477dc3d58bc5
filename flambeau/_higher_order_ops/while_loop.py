"""`torch.while_loop` in PyTorch's place for it."""
from flambeau.control_flow import while_loop

__all__ = ["while_loop"]
