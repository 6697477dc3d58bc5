"""Settings of the watching of frames: remembered, as no frame is watched."""
from __future__ import annotations

from typing import Any

_lru_cache = True


def _set_lru_cache(enabled: bool) -> None:
    """Remembered: whether what was compiled last is looked at first."""
    global _lru_cache
    _lru_cache = bool(enabled)


def set_eval_frame(callback: Any) -> None:
    """Only `None`, no callback, can be set."""
    if callback is not None:
        raise NotImplementedError("torch._C._dynamo.eval_frame.set_eval_frame: flambeau does not "
                                  "watch frames; torch.compile replays plans")


def get_eval_frame_callback() -> None:
    """None: no frame is watched."""


def reset_code(code: Any) -> None:
    """Has no effect: nothing is kept for a piece of code."""


def unsupported() -> None:
    """What compiled code must not call; it has no effect."""
