"""Streams of CUDA devices: there are none."""
from __future__ import annotations

from flambeau.cuda import Event, ExternalStream, Stream

__all__ = ["Event", "ExternalStream", "Stream"]
