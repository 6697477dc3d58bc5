"""`torch.cuda.amp`: the former names of what `torch.amp` offers; without CUDA they do nothing."""
from __future__ import annotations

from flambeau.amp._deprecated import custom_bwd, custom_fwd
from flambeau.cuda.amp.autocast_mode import autocast
from flambeau.cuda.amp.common import amp_definitely_not_available
from flambeau.cuda.amp.grad_scaler import GradScaler

__all__ = ["amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd", "GradScaler"]
