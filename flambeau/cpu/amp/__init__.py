"""`torch.cpu.amp`: the former names of what `torch.amp` offers for the CPU."""
from __future__ import annotations

from flambeau.cpu.amp.autocast_mode import autocast
from flambeau.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
