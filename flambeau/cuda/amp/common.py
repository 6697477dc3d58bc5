"""`torch.cuda.amp.common`."""
from __future__ import annotations


def amp_definitely_not_available() -> bool:
    """True: there is no CUDA."""
    return True


__all__ = ["amp_definitely_not_available"]
