"""Automatic mixed precision: the ops that gain from a narrow type get it, the others keep float32.

>>> import flambeau
>>> layer = flambeau.nn.Linear(4, 2)
>>> with flambeau.autocast("cpu", dtype=flambeau.bfloat16):
...     print(layer(flambeau.ones(3, 4)).dtype)
torch.bfloat16
"""
from __future__ import annotations

from flambeau.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from flambeau.amp.grad_scaler import GradScaler

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available", "GradScaler"]
