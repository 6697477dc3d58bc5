"""Modules that train with rounded weights, for dynamic quantisation of what comes in."""
from __future__ import annotations

from typing import Any

from flambeau._support.lazy.modules import parts
from flambeau.ao.nn import qat


class Linear(qat.Linear):
    """`qat.Linear`; what watches activations must not remember."""

    def _watch(self, qconfig: Any) -> None:
        from flambeau.ao.quantization.qconfig import _activation_is_memoryless
        if not _activation_is_memoryless(qconfig):
            raise ValueError("Dynamic QAT requires a memoryless observer.This means a "
                             "MovingAverage observer with averaging constant equal to 1")
        super()._watch(qconfig)

__all__ = ["Linear"]

parts(__name__, {
    "modules": "*",
    "modules.linear": "Linear"})
