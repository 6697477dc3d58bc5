"""Compiling Python's frames: none is."""
from __future__ import annotations

from typing import Any

from flambeau._dynamo._absent import TRACER, absent_function

FRAME_COUNTER = 0
FRAME_COMPILE_COUNTER: dict[Any, int] = {}
convert_frame = absent_function(__name__, "convert_frame", TRACER)
convert_frame_assert = absent_function(__name__, "convert_frame_assert", TRACER)
compile_frame = absent_function(__name__, "compile_frame", TRACER)
__all__ = ["FRAME_COMPILE_COUNTER", "FRAME_COUNTER", "convert_frame", "convert_frame_assert"]
