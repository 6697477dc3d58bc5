"""Functions with control flow."""
from __future__ import annotations

import flambeau as torch


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: {"a": x}["a"].cos(), (x,))
