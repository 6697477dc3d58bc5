"""Switching the recording of the graph off and on."""
from __future__ import annotations

from flambeau.core.autograd.grad_mode import (  # noqa: F401
    _force_original_view_tracking,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = ["enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad",
           "set_grad_enabled", "set_multithreading_enabled"]
