"""`torch.cuda.amp.autocast` and its decorators, deprecated."""
from __future__ import annotations

from flambeau import float16
from flambeau.amp._deprecated import autocast_of, custom_bwd, custom_fwd

autocast = autocast_of("cuda", float16)

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
