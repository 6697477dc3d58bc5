"""`torch.cpu.amp.autocast`, deprecated."""
from __future__ import annotations

from flambeau import bfloat16
from flambeau.amp._deprecated import autocast_of

autocast = autocast_of("cpu", bfloat16)

__all__ = ["autocast"]
