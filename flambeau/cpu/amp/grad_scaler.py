"""`torch.cpu.amp.GradScaler`, deprecated."""
from __future__ import annotations

from flambeau.amp._deprecated import scaler_of

GradScaler = scaler_of("cpu")

__all__ = ["GradScaler"]
