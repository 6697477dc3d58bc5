"""When activations are quantised."""
from __future__ import annotations

import enum


class QuantType(enum.IntEnum):
    """Activations are quantised as they come (`DYNAMIC`), with scales found before (`STATIC`), with
    scales found in training (`QAT`), or not at all (`WEIGHT_ONLY`)."""

    DYNAMIC = 0
    STATIC = 1
    QAT = 2
    WEIGHT_ONLY = 3


__all__ = ["QuantType"]
