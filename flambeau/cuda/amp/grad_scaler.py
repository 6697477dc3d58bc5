"""`torch.cuda.amp.GradScaler`, deprecated."""
from __future__ import annotations

from flambeau.amp._deprecated import scaler_of

GradScaler = scaler_of("cuda")

__all__ = ["GradScaler"]
